"""Plots about things lost, found, mended and given. How to read a plot: see telling.py."""

LOST = """
One [morning|day|afternoon], {A} [noticed|saw|found out] that {Ahis} {o} was gone. It had [always|ever since last winter] hung on a nail beside the door, and now there was only the nail. [{AHe} looked under the table, behind the curtain and even in the soup pot.|{AHe} turned the whole place upside down.] Nothing.
There was one thing that {A} loved more than anything else: {ao} that had belonged to {Ahis} grandmother. And on a [windy|grey|cold|bright] morning it was not in its place. [{A} searched every corner twice.|{A} looked everywhere, and then everywhere again.]
{A} owned {ao}, and [{Ahe} was very proud of it|{Ahe} never went anywhere without it]. But one evening, on the way home from {P2}, {Ahe} reached for it and found nothing but air. The {o} was lost.

"Think," {A} told {Aself}. "Where did [you have it|I have it] last?" [It had been|It must have been] at {P}. So {A} [set off at once|put on {Ahis} scarf and left|{walk} there as fast as {Ahe} could].
{A} sat down and thought hard. {AHe} had been at {P} the day before, that much was certain. [Without even finishing {Ahis} {food}, {Ahe} hurried out.|So {Ahe} left {Ahis} {food} on the table and hurried out.]
[There was only one place it could be|Only one place came to mind]: {P}. {AHe} had gone there the day before to [watch the clouds|rest a while|gather berries]. So back {Ahe} {walk}, step by step, with {Ahis} eyes on the ground.

On the way {Ahe} met {aB} named {B}. "You look as if the sky had fallen," said {B}. {A} told {Bhim} about the {o}. "Then two of us should look," said {B}, [and that was that|and came along without another word].
Halfway there stood {B}, {aB} with [a torn umbrella|a very long scarf|a basket of eggs|mud up to the ears]. "What are you looking for?" {Bhe} asked. "My {o}," said {A}. "I have lost it, and I feel as if I had lost a friend." {B} [nodded slowly|thought about this]. "I am good at finding things," {Bhe} said. "I will help you."
{B} {theB} was sitting by the road. {BHe} had never owned much {Bself}, but {Bhe} knew what it is to miss something. "Come," {Bhe} said, "four eyes see more than two."

? They asked everyone they met. [A goose had seen nothing.|A snail had seen nothing, but very slowly.|Two ants had no time to talk.] [A sleepy toad|An old crow|A boy with a kite] pointed toward {P} and said that something had been shining there since yesterday.
? The path was long, and to pass the time {B} told a story about [a cousin who had lost his own shadow|an aunt who had lost a whole house and found it next door]. {A} laughed for the first time that day.
? Twice they thought they had found it. The first time it was [an old spoon|a wet leaf|a bottle top]. The second time it was [a beetle, who was not amused|only the sun in a puddle|a button].

At {P} they [searched until their knees were sore|looked under every stone]. And there, [in the tall grass|between two roots|behind a broken barrel], sat {C}, a small {Ck} with big eyes, and in {Chis} lap lay the {o}. "I found it," whispered {C}. "I was keeping it dry until somebody came."
When they reached {P}, somebody was already there. {C}, a {Ct} {Ck}, was [turning the {o} over and over|holding the {o} up to the light]. "Is this yours?" asked {C}. "I hoped it was nobody's. I have never had anything so beautiful."
They found it at {P} just [before dark|as the first star came out]. But they were not the first. {C} the {Ck} had picked up the {o} that morning and had [sat down beside it|stayed with it all day], so that nobody would step on it.

{A} could have been angry. Instead {Ahe} looked at the {Ct} {Ck} and saw how [carefully {Che} held it|lonely {Che} was]. "You looked after it well," said {A}. "Would you like to come home with us and have some {food}?"
{A} was so glad that [{Ahe} could hardly speak|{Ahis} voice shook]. "Thank you," {Ahe} said at last. "What can I give you for it?" {C} thought for a long time. "May I come and look at it sometimes?" {Che} asked.
"You may have anything you like for it," said {A}. But {C} only shook {Chis} head. "I would like [a friend|somebody to talk to|company]," {Che} said, "[if you have one to spare|if it is not too much to ask]."

So that evening [three|all three of them] sat around {As} table and shared {food}. The {o} hung on its nail again, and [whenever the lamp flickered, it shone|it shone in the light of the fire].
From then on {C} came every {day}, and {B} came too. The {o} [hung by the door as before|was back in its place], but {A} looked at it less and less, because [there was always somebody to talk to|{Ahis} house was never empty now].
That night the {o} was back on its nail. But when {A} lay in bed, {Ahe} was not thinking of the {o} at all. {AHe} was thinking of {B} and {C}[, and of {day}, when they would all meet again|, and of how odd it is to find two friends while looking for something else].
"""
LOST_MORAL = ["What is lost may lead to what was never looked for.", "Sometimes we must lose a small thing to find a great one.", "A friend is worth more than anything that hangs on a nail."]
LOST_QA = [("What did {Aname} lose?", "{Aname} lost {Ahis3} {o}."), ("Who helped {Aname} to look?", "{B} helped {Aname}."), ("Who found the {o}?", "{C} found the {o}."), ("Where was the {o} found?", "The {o} was found at {P}.")]

BROKEN = """
In the middle of {town} stood {machine}, and {A} was the one who looked after it. [Every evening {Ahe} oiled its wheels and wished it good night.|Nobody had asked {Ahim} to. {AHe} simply loved it.] Then one {day}, it stopped.
{A} had one duty, and {Ahe} took it seriously: to look after {machine} of {town}. It had worked for a hundred years. On a [cold|rainy|perfectly ordinary] {day}, with a sigh and a small puff of dust, it stopped.
Everybody in {town} was fond of {machine}. [It was old and it creaked, but it had never failed.|People set their days by it.] So when it broke on a {day} morning, they all came running to {A}, who took care of it.

{A} opened the little door at the back and looked inside. A part was missing: [where a small wheel should have been, there was only a hole|the smallest wheel of all had worn away to nothing]. "Without it," said {A}, "nothing will turn again."
It took {A} all day to find the reason. Deep inside, one tiny wheel had cracked, no bigger than a button. "[Such a small thing|So little]," {Ahe} said, "and everything stands still because of it."

[Some people grumbled.|People shook their heads.] "Throw it away and buy a new one," said {C}, a {Ct} {Ck} who [always knew better|had never liked the noise]. {A} did not answer. {AHe} was already [drawing the missing wheel on a piece of paper|putting on {Ahis} coat].
"It is too old," said {C} the {Ck}. "Nobody makes such wheels any more." [That was true, and it hurt.|{A} was afraid that {Che} was right.] But {Ahe} did not want to give up before {Ahe} had even begun.

{A} remembered that {aB} named {B} lived at {P} and could make anything out of anything. So {Ahe} {walk} there [through wind and rain|before sunrise], with the broken wheel in {Ahis} pocket.
Far away, at {P}, lived {B}, {aB} who [collected old things|had once built a clock out of spoons]. {A} [had never dared to visit {Bhim}|had only heard of {Bhim}], but now {Ahe} knocked on {Bhis} door.

? {B} looked at the wheel through a glass. {BHe} hummed. {BHe} scratched {Bhis} ear. "Hm," {Bhe} said, and after a long while: "Hm hm." {A} did not dare to breathe.
? The door opened by itself. Inside there were [a thousand drawers|shelves up to the ceiling], and on each stood a name in neat letters: [screws that squeak, screws that do not|springs, feathers, lost keys].

"I have no such wheel," said {B} at last. "But you have {ao}, I see. If you give me that, I can [melt it down and cast a new one|cut a wheel out of it]." It was the only treasure {A} had. {AHe} [swallowed|was silent for a moment], and then {Ahe} laid the {o} on the table.
"I can make one," said {B}, "but I need good metal for it, and that is hard to come by." {A} looked down at {Ahis} {o}. {AHe} had carried it since {Ahe} was small. [Slowly|Without a word] {Ahe} took it off and gave it to {Bhim}.

They worked all night, the two of them, by the light of one candle. {B} filed and {A} [polished|held the lamp]. When the sun came up, the new wheel [lay shining on the bench|was done].
{B} worked with [great care|steady hands], and {A} helped as well as {Ahe} could. At dawn the wheel was ready. [It was still warm.|It fitted into the palm of a hand.]

{A} hurried back to {town} and put the wheel into its place. For a moment nothing happened. Then there was a click, and a tick, and a long, happy creak, and {machine} [began to turn|came back to life].
By noon {A} was home. [Half the town was waiting.|Everybody stood and watched.] {AHe} set the little wheel in, gave it one drop of oil, and pushed. {Machine} shook itself like a wet dog and [started again|went on as if it had only been asleep].

[The people cheered.|How they cheered!] Even {C} [clapped|took off {Chis} hat], and {Che} said quietly, "I was wrong. I am glad of it." 
[Somebody began to sing.|The bells rang.] {C} came up to {A} and coughed. "I said it was too old," {Che} said. "[I had forgotten that some things are worth the trouble.|Next time I shall hold your lamp.]"

And the {o}? [It still turns, deep inside, where nobody sees it.|It is still there, in a way.] Whenever {A} hears that steady tick, {Ahe} smiles, because there is a little of the old days in it.
{A} never got another {o}, and never wanted one. When people ask {Ahim} where it went, {Ahe} takes them to {machine}, and tells them to listen. "There," {Ahe} says. "Do you hear it?"
"""
BROKEN_MORAL = ["A small part may carry the whole.", "What we give away is not lost if it keeps something going.", "Old things are worth the trouble of those who love them."]
BROKEN_QA = [("What broke in {town}?", "{Machine} broke."), ("Who made the new wheel?", "{B} made the new wheel."), ("What did {Aname} give to {B}?", "{Aname} gave {B} {Ahis3} {o}."), ("Where did {B} live?", "{B} lived at {P}.")]

TRADE = """
{A} wanted only one thing in the world: {ao2}. But {ao2} costs money, and {A} had [none|nothing but {ao}]. "Then I shall begin with what I have," {Ahe} said, and {Ahe} took {Ahis} {o} and went to the market of {town}.
It was the birthday of {As} [mother|grandfather|best friend], and {A} wished to give {ao2}. All {Ahe} owned was {ao}. So {Ahe} put it into {Ahis} bag and {walk} to the market of {town}[, hoping for luck|, whistling].

At the gate sat {B}, {aB} with [cold ears|a runny nose|holes in both shoes]. "What a fine {o}!" said {B}. "I need one badly. Will you take [my three eggs|my basket of apples|a jar of honey] for it?" {A} thought it over and agreed.
The first one to stop {Ahim} was {B}, {aB}. "[I have been looking for just such {ao}|{Ao}! At last!]" {Bhe} cried. "I will give you [a jar of honey|a bag of flour|a basket of apples] for it." They shook on it.

{A} had not gone ten steps when a [tired cook|baker with floury arms|woman with five children] stopped {Ahim}. "That is exactly what my cake is missing," came the cry. In return {A} got [a warm blanket|a wool blanket with red stripes]. It was a better trade than the first.
In the next street a baker was wringing his hands. "My oven is hot, and I have nothing to put in the cake!" {A} gave him what {Ahe} had, and the baker gave {Ahim} [a thick wool blanket|his old blanket, which was still very good].

By the well {A} saw {C}, an old {Ck}, who was shivering so hard that {Chis} teeth rattled. [{A} looked at the blanket. It could have been traded for something fine.|Nobody else seemed to notice.] "Take it," said {A}, and put the blanket around {Chim}. "But I have nothing to give you," said {C}. "That is all right," said {A}.
Near the fountain somebody was sitting on the cold stones: {C}, a {Ct} {Ck}, without a coat. {A} had wanted to trade the blanket for something better. [But there are things one cannot walk past.|{AHe} stood there for a while, and then {Ahe} knew what to do.] {AHe} laid it over {Cs} shoulders and asked for nothing.

? So now {A} had nothing at all. {AHe} turned {Ahis} pockets inside out. There was [a crumb|a piece of string|a dry leaf] in one and a hole in the other.
? Evening came, and the market closed. [One by one the lamps went out.|The stalls were folded up.] {A} had empty hands, and yet {Ahe} did not feel poor.

{A} was [almost home|on {Ahis} way home] when {Ahe} heard steps behind {Ahim}. It was {C}. "Wait!" {Che} called. "I went home and looked in my attic. I have no use for this, but perhaps you do." And {Che} held out {ao2}.
"You, there!" somebody called. {C} came running after {Ahim}, with the blanket flying like a flag. "I [forgot|remembered] that I have one thing left," {Che} said. "It was my father's." In {Chis} hands lay {ao2}.

{A} could not believe {Ahis} eyes. It was the very thing {Ahe} had wanted. [{AHe} tried to say thank you, but {C} had already turned the corner.|"How did you know?" {Ahe} asked. But {C} only smiled.]
For a moment {A} could not speak. Then {Ahe} asked {C} to come along, and the two of them {walk} home together, talking all the way.

[That evening was the happiest of the year.|It was a good evening.] And whenever somebody asked {A} what the {o2} had cost, {Ahe} said: "One blanket, and I got it all back."
The {o2} stands on {As} shelf to this day. [When visitors ask where it is from, {Ahe} tells them of one {o}, one blanket and one cold evening.|It was the best trade {Ahe} ever made, and {Ahe} had not been trading at all.]
"""
TRADE_MORAL = ["Who gives without counting is given more than can be counted.", "The best trade is the one you never meant to make.", "Kindness finds its own way home."]
TRADE_QA = [("What did {Aname} want?", "{Aname} wanted {ao2}."), ("Who took the {o}?", "{B} took the {o}."), ("Who got the blanket?", "{C} got the blanket."), ("What did {C} give {Aname}?", "{C} gave {Aname} {ao2}.")]

GARDEN = """
{A} had a garden, but nothing wanted to grow in it. [The soil was hard and full of stones.|It lay in the shadow of a wall.] {AHe} had planted beans, and the beans had [stayed in the earth as if they were afraid|never come up].
Behind {As} home there was a piece of bare ground. Everyone said that nothing would ever grow there. {A} was [too stubborn to believe it|not so sure].

One day {B}, {aB} who was passing through {town}, gave {Ahim} a seed in [a twist of paper|a walnut shell]. "What will it become?" asked {A}. "That depends on who waters it," said {B}, and [was gone|went on].
At the market {A} met {B}, {aB} with a tray of seeds. {AHe} had only one coin. "For one coin you get one seed," said {B}. "But it is a good one. [Be patient with it.|Do not dig it up to look.]"

{A} planted it that same evening. {AHe} watered it every morning and every night. A week went by, then two, then three. [The ground stayed bare.|Nothing came.] 
So {A} made a hole, put the seed in, and covered it as one covers a sleeping child. Every day {Ahe} carried water from {P}, though the way was long. Day after day there was nothing to see [but brown earth|at all].

{C}, the {Ck} from next door, leaned over the fence. "You are watering mud," {Che} said, and [laughed|shook {Chis} head]. {A} went red, but the next morning {Ahe} came again with {Ahis} can.
The neighbours smiled about it. "There goes {Aname} again, to water the dust," said {C} the {Ck}. [It stung a little.|{A} pretended not to hear.] {AHe} went on all the same.

? Then the rain stopped. No drop fell for [forty days|a month], and the wells of {town} ran low. {A} gave the seed half of {Ahis} own drinking water.
? In a night of storm {A} woke and ran outside. {AHe} held {Ahis} {o} over the little bed of earth until the hail was over. In the morning {Ahe} had a cold, but the bed was whole.

And then, on a {day}, there it was: a green tip, no bigger than [a grain of rice|the point of a needle]. {A} [lay down flat on the ground to look at it|danced around it three times].
One morning {A} came out half asleep, and stopped. Out of the earth looked two small leaves. They [trembled in the wind|were as thin as paper], but they were there.

It grew faster and faster. In a month it reached {As} knee, in two it looked over the wall. By {season} it was a tree, and on it hung [golden pears|plums as blue as the evening|apples as red as lamps], more than one could count.
After that there was no holding it. It climbed over the wall, it shaded the bench, and in {season} it bore [sweet, golden pears|apples that smelled of honey|dark cherries], basket after basket.

{C} stood at the fence and [said nothing|looked at {Chis} feet]. {A} picked the best fruit and held it out to {Chim}. "I laughed at you," said {C}. "Yes," said {A}, "but now you can help me carry the baskets."
The whole street came to look. {C} came last. {A} saw that {Che} was ashamed, so {Ahe} [put a full basket into {Chis} arms|asked {Chim} to be the first to taste it]. "It is sweet," said {C} softly.

? When {B} passed through {town} the next year, {A} ran out to thank {Bhim}. "So that is what it became," said {B}, looking up. "I see who watered it."
? {A} kept one seed of the first fruit, [in a twist of paper|in a walnut shell]. One day {Ahe} would give it to somebody who had a bare piece of ground.

[Every year|Each {season}] since then there has been a feast under {As} tree. {C} brings the chairs, and [everyone|all of {town}] brings something to eat.
Today children climb in its branches. They think that it has always been there. [{A} knows better, and smiles.|Only {A} knows how small it was, and how long one can wait for two green leaves.]
"""
GARDEN_MORAL = ["Patience is a kind of watering.", "What grows slowly stands long.", "Do not laugh at bare earth; you cannot see what is in it."]
GARDEN_QA = [("Who gave {Aname} the seed?", "{B} gave {Aname} the seed."), ("Who laughed at {Aname}?", "{C} laughed at {Aname}."), ("What grew from the seed?", "A tree grew from the seed.")]

SECRET = """
It began with a map. {A} found it [inside an old book|under a loose board|rolled up in a bottle], and at the bottom somebody had written: "Look for what shines at {P}."
One rainy {day} {A} was cleaning the attic when a piece of paper fell out of {ao}. It was a map. A red line ran from {town} to {P}, and there it ended in a cross.
When {As} grandfather gave {Ahim} {ao}, he said, "There is a secret in it." It took {A} three days to find the tiny drawer, and in the drawer lay a map with a red cross on {P}.

{A} ran to {B}, {Ahis} best friend, {aB} who was never afraid of anything [except geese|but thunder]. {B} read the map twice and turned it around once. "We leave at dawn," {Bhe} said.
Of course {Ahe} showed it to {B}. {B} was {aB} and the {Bt} one of the two. "It may be nothing," said {B}. "[It may be everything|But nothing is worth a walk, too]," said {A}.

They packed [a rope, a lamp and some {food}|{food}, a blanket and a long rope] and {walk} off while {town} was still asleep. The path led [over three hills|along the river|past the last house], and after that there was no path at all.
At dawn they were on their way, with {food} in the bag and the {o} around {As} neck. [Mist lay over the fields.|The birds were just waking up.]

? At a bridge they met {C}, a {Ct} {Ck}. "Nobody crosses without a riddle," said {C}. "What gets wetter the more it dries?" They thought and thought. "A towel!" cried {B}, and {C} [had to let them pass|stepped aside, looking pleased].
? A river lay across their way, and there was no bridge. {C}, a {Ct} {Ck}, lay on the bank and yawned. "I can carry you," said {C}, "if you tell me a joke I do not know." It took [four|seven] jokes.
? They lost their way in the fog. It was {C}, a {Ct} {Ck}, who found them and [led them back to the path by the sound of a bell|showed them the stars between the clouds].

{P} was [darker|older|quieter] than they had thought. [Their steps echoed.|Something dripped.] {A} held up the lamp. "Here," {Ahe} whispered. "The cross must be here." And they began to dig.
They reached {P} when the sun was low. [For a long time they found nothing.|They searched every corner.] Then {B} leaned against a stone, and the stone moved.

Under the earth lay a wooden box. {A} opened it with shaking fingers. There was no gold in it. There was [a letter|a small book] and {ao2}. "To whoever comes," they read. "The treasure is the one who came with you. Look at each other."
They pulled out a box, heavy with rust. Inside lay {ao2} and a note: "I hid this when I was young, with my best friend. If you found it together, it is yours. If you came alone, go back and fetch somebody."

{A} and {B} looked at each other, and [then they began to laugh|neither of them said a word for a while]. "All that way," said {B}, "[for something I already had|to find you]."
At first {A} was disappointed. But then {Ahe} thought of [the long walk, the jokes and the fog|the whole long day], and {Ahe} saw that it was true. [{B} had known it all the time.|{B} grinned at {Ahim} in the lamplight.]

They ate the rest of the {food} [on the threshold|under the first stars]. Then they wrote their own names on the note and put it back [for whoever comes next|with something of their own: a button and a feather]. Only the {o2} they took home.
They did not keep the box. They dug it in again, with a new note in it, and [somewhere there is a new map|{A} drew a new map]. Perhaps you will find it one day. If you do, do not go alone.
"""
SECRET_MORAL = ["The best treasure is the one who digs beside you.", "A road is only as long as it is lonely."]
SECRET_QA = [("What did {Aname} find at the beginning?", "{Aname} found a map."), ("Who went with {Aname}?", "{B} went with {Aname}."), ("Where was the box hidden?", "The box was hidden at {P}."), ("What did they take home?", "They took home {ao2}.")]

GIFT = """
{day} was {Bs} birthday, and {A} had no present. {B} was {Ahis} best friend, {aB} with [a big laugh|kind eyes], and {A} had been thinking about it for weeks. [But every idea was either too small or too dear.|Every idea seemed wrong.]
{A} had promised {B}, {aB} and {Ahis} dear friend, a present that nobody else would think of. That was easy to say. Now it was the evening before the birthday, and {A} had [nothing at all|only an empty box].

First {Ahe} tried to bake {food}. It [came out black on one side and white on the other|rose, and rose, and then fell flat with a sigh]. Even the [birds|mice] would not touch it.
First {Ahe} made a drawing of {B}. But the nose went wrong, and the more {A} mended it, [the more it looked like a potato|the longer it grew].

Then {Ahe} remembered the {o2} in the window of the shop at {P}. {B} had stood before it every week and looked. It cost [nine silver coins|more than {A} had ever owned]. {A} had {ao}, and nothing else of value.
"{Ao2}!" {A} said suddenly. {B} had [always wanted one|talked of it all summer]. There was one in the shop at {P}. But there was no money in {As} jar, not one coin.

{A} thought it over for the time it takes to [drink a cup of tea|walk around the house]. Then {Ahe} took {Ahis} {o} to {C}, the {Ck} who bought and sold things, and came back with the coins. [It felt strange to be without it.|{AHe} did not look back.]
So {Ahe} sold {Ahis} {o} to {C}, a {Ct} {Ck} who knew what things were worth. "Are you sure?" asked {C}. "[Quite sure|No, but do it quickly]," said {A}.

? With the coins in {Ahis} pocket {Ahe} ran to {P}, and was just in time. The shop was closing. {AHe} knocked and knocked until the door opened again.
? {AHe} wrapped the {o2} in blue paper, and then again, because the first time {Ahe} had wrapped {Ahis} own [sleeve|scarf] into it.

The next day {B} opened the present. [{BHe} said nothing.|{BHe} became very quiet.] Then {Bhe} went out and came back with a parcel. "I also have something for you," {Bhe} said. "[I could not wait for your birthday.|I saw it at {Cs} yesterday.]"
When {B} saw the {o2}, tears came to {Bhis} eyes. "You sold something for this," {Bhe} said. "I know, because I was at {Cs} this morning." And {Bhe} put a parcel on the table.

In the parcel lay the {o}. {B} had [given all {Bhis} savings to {C} for it|bought it back with everything {Bhe} had], as soon as {Bhe} saw it there.
{A} tore off the paper. It was {Ahis} own {o}! {B} had seen it at the {Ck}'s and had known at once whose it was. [Every coin in {Bhis} jar had gone for it.|{BHe} had paid for it with {Bhis} last coins.]

They looked at each other and [laughed until they had to sit down|could not stop smiling]. Nobody had any money left, and [nobody minded|there was only burnt cake to eat, and it was the best they ever had].
"So now we both have nothing," said {A}. "And everything," said {B}. [They ate the burnt cake to the last crumb.|They sat together until the lamp went out.]
"""
GIFT_MORAL = ["A gift is worth what it cost the heart.", "Nobody is poor who has a friend like that."]
GIFT_QA = [("Whose birthday was it?", "It was {B}'s birthday."), ("What did {Aname} sell?", "{Aname} sold {Ahis3} {o}."), ("What did {Aname} give {B}?", "{Aname} gave {B} {ao2}."), ("Who bought the {o} back?", "{B} bought the {o} back.")]

#: name, plot, morals, questions, words it may be asked for by
PLOTS = [("lost", LOST, LOST_MORAL, LOST_QA, ["losing something", "a lost thing", "finding a friend", "friendship"]),
         ("broken", BROKEN, BROKEN_MORAL, BROKEN_QA, ["a broken machine", "mending something", "giving something up"]),
         ("trade", TRADE, TRADE_MORAL, TRADE_QA, ["kindness", "a good trade", "sharing", "a market"]),
         ("garden", GARDEN, GARDEN_MORAL, GARDEN_QA, ["patience", "a garden", "a seed", "a tree", "never giving up"]),
         ("secret", SECRET, SECRET_MORAL, SECRET_QA, ["a treasure", "a map", "an adventure", "a secret", "a journey"]),
         ("gift", GIFT, GIFT_MORAL, GIFT_QA, ["a birthday", "a present", "a gift", "friendship"])]
