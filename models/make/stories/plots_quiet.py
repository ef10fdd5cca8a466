"""Quieter plots: a letter, a quarrel, a craft, a farewell, a fallen star, a feast, a song, a voyage. How to read a plot: see telling.py."""

LETTER = """
One {day} a letter came to {As} door, but it was not for {Ahim}. "To {B}, at {P}," said the envelope, in [shaky|tiny|very neat] writing. The postman had [dropped it into the wrong box|made a mistake], and the postman was already gone.
{A} found a letter lying in the [snow|road|grass]. It was a little wet, but one could still read what stood on it: "For {B}, at {P}. Very important."

{A} did not know any {B}. {P2} was as far as {Ahe} had ever been, and {P} lay a whole day beyond. [But a letter is a letter.|But somebody was waiting for it, perhaps.] {AHe} put it under {Ahis} coat and set out.
It would have been easy to [throw it away|leave it where it was]. But {A} thought of the hand that had written it. So {Ahe} packed {food} and {ao}, and {walk} off toward {P}.

At {P2} {Ahe} asked the way. {C}, a {Ct} {Ck}, scratched {Chis} head. "To {P}? Nobody goes there," {Che} said. "I will [draw you a map|tell you the way], if you mend my fence." It took the whole afternoon, and it was a good fence.
Near {P2} the road split in two. There sat {C}, a {Ct} {Ck}. "Left," said {C}. "No, right. No, wait." In the end {C} came along part of the way, [just to be sure|to see who was right].

? In the night {A} slept under a tree, with the letter under {Ahis} head. {AHe} dreamed that it was singing.
? A gust of wind tore the letter out of {As} hand. {AHe} chased it over two fields and a ditch, and caught it at the edge of the water.
? It began to pour. {A} wrapped the letter in {Ahis} own scarf. {AHe} got wet to the skin. The letter did not.

On the second evening {A} reached {P}. An old {Bk} sat there [and looked down the road|in front of the door]. "Are you {B}?" asked {A}. "I have a letter for you." {Bs} hands shook so much that {A} had to open it.
It was almost dark when {Ahe} came to {P}. A lamp burned in the window. {B} was {aB} with white hair, and {Bhe} [looked at the envelope for a long time|had to sit down when {Bhe} saw the writing].

"It is from my [sister|brother]," said {B}. "We quarrelled twenty years ago. I thought I would never hear a word again." And {Bhe} read: "I was wrong. Will you come for {season}?"
"I have waited for this for thirty years," said {B}. "I went out to the road every day. Today I had almost stopped." The letter had only three words: "Please come home."

{B} [laughed and cried at once|could not say anything]. Then {Bhe} cooked [everything there was in the house|the best soup {A} had ever eaten], and {A} told {Bhim} about the way. In the morning they left together, because {B} was not going to wait for one more day.
"How can I thank you?" asked {B}. {A} thought of the rain and the wrong turns. "Write to me," {Ahe} said. "I have never had a letter of my own."

Some weeks later the postman knocked at {As} door. "This time it is for you," he said. {A} [read it seven times|put it above {Ahis} bed], and then {Ahe} sat down to write an answer.
Now there is a letter for {A} every month, with a pressed flower in it. And the postman [reads every address twice|takes off his hat when he sees {Ahim}].
"""
LETTER_MORAL = ["A small errand may carry a great thing.", "It is never too late for three words."]
LETTER_QA = [("Who was the letter for?", "The letter was for {B}."), ("Where did {B} live?", "{B} lived at {P}."), ("Who showed {Aname} the way?", "{C} showed {Aname} the way.")]

QUARREL = """
{A} and {B} were the best of friends. {B} was {aB}, and they [shared everything|had shared everything since they were small]: their {food}, their secrets, and {ao} that they had found together at {P}. Then they quarrelled.
There were two friends in {town}: {A}, and {B} {theB}. [You never saw one without the other.|They built a boat together, and they dug a pond together.] But one {day} they found {ao} at {P}, and there was only one of it.

It began with a small thing. "It is mine," said {A}, "I saw it first." "It is mine," said {B}, "I picked it up." [Soon they were shouting.|They said things that they did not mean, and then things that were even worse.]
"You had it yesterday," said {A}. "I had it for one hour!" said {B}. [One word led to another.|Neither of them would let go.] In the end they [pulled so hard that the {o} flew into the river|each went home alone and slammed the door].

After that they did not speak. {A} looked the other way when {B} came by. {B} crossed the street. [It was a long, silent week.|A week can be very long.] {A} [told {Aself} that {Ahe} did not care|ate {Ahis} {food} alone, and it tasted of nothing].
{A} drew a white line through the middle of the garden. {B} built a wall of boxes. [Behind the line {A} was right, and behind the wall {B} was right, and both were lonely.|The line was very straight, and it made nobody happy.]

{C}, the oldest {Ck} in town, saw it all. {CHe} went to {A} and said, "I need somebody to [pick my apples|paint my fence] tomorrow." Then {Che} went to {B} and said exactly the same.
Then {C}, a {Ct} {Ck}, fell ill. "I need [wood from {P2}|herbs from {P2}]," {Che} said to {A}. "But it takes two to carry the basket." And to {B} {Che} said the same, [and winked at the ceiling|word for word].

? When they saw each other, they both wanted to turn around. But {C} was watching from the window.
? "You here?" said {A}. "You here?" said {B}. That was the first thing they had said to each other for nine days.

At first they worked in silence. Then [a wasp chased {B} three times around the tree|{A} fell into a bucket]. {A} [tried not to laugh|bit {Ahis} lip]. {B} looked at {Ahim}. And then both of them laughed until they could not stand.
They carried the basket between them and looked straight ahead. The path was steep. {A} slipped, and without thinking {B} caught {Ahim} by the arm. "[Thank you|I am sorry]," said {A}. "[I am sorry, too|So am I]," said {B}.

"I do not even want the {o}," said {A}. "Neither do I," said {B}. "I wanted to be right." "[So did I|And I, too]," said {A}. "It was not worth it."
"What were we fighting about?" asked {B}. {A} had to think. "About {ao}," {Ahe} said. It sounded very small.

They [gave the {o} to {C}, who hung it over {Chis} door|hung the {o} on the tree between their houses, where it belonged to both]. And {C} smiled, for {Che} had never needed any help at all.
From then on the {o} lived one week with {A} and one week with {B}. [More often than not they forgot to change it over.|And whoever had it had to cook for the other.]
"""
QUARREL_MORAL = ["Being right is cold company.", "A line in the sand keeps out two people.", "Two hands on a basket make peace sooner than ten speeches."]
QUARREL_QA = [("What did {Aname} and {B} quarrel about?", "They quarrelled about {ao}."), ("Who helped them to make peace?", "{C} helped them."), ("Where did they find the {o}?", "They found the {o} at {P}.")]

LEARN = """
More than anything {A} wanted to learn how to [play the violin|carve wood|blow glass|bake]. But there was only one teacher in {town}, {B}, an old {Bk}, and {Bhe} had not taken a pupil for [ten|twenty] years.
{B} {theB} made the finest [bells|shoes|clocks|pots] in the land. {A} stood before {Bhis} window every day. One {day} {Ahe} took all {Ahis} courage and went in. "Will you teach me?" {Ahe} asked.

"No," said {B}. The next day {A} came again. "No," said {B}. On the seventh day {B} sighed. "[You are worse than the rain|You do not give up]," {Bhe} said. "Take the broom and sweep the floor."
"I have no time for beginners," said {B}. {A} said, "Then let me only watch." And so {Ahe} sat in the corner, day after day, [quiet as a chair|and watched {Bhis} hands].

For a whole month {A} did nothing but sweep. {C}, another {Ck}, laughed at {Ahim}. "[Have you learned to hold the broom?|You will be the best sweeper in the world!]" {Che} called. But {A} had learned to listen: {Ahe} knew every sound of the workshop.
At last {B} gave {Ahim} the first task, and it went wrong. So did the second. {C}, who lived next door, shook {Chis} head. "Give it up," said {C}. "Not everyone can do everything." {A} began again.

? {A} practised at night by the light of a candle, until {Ahis} fingers hurt. In the morning {Ahe} hid {Ahis} failures under the bed.
? Once {Ahe} threw everything into the corner and ran out to {P}. There {Ahe} sat until {Ahe} was cold. Then {Ahe} came back and picked up the pieces.

Then came a letter from {town}: by {day2} they needed something very special [for the great feast|for the queen's visit]. But {B} had hurt {Bhis} hand and could not work. [{BHe} looked at {A}.|"You will have to do it," {Bhe} said.]
One morning {B} did not get up. {BHe} had a fever, and the most important work of the year was not done. "I cannot do it alone," {Bhe} said. "[Be my hands|You have watched me for long enough]."

{A} worked for three days and three nights. {B} sat beside {Ahim} and said only now and then, "Slower," or "Again," or "Yes." It was {Ahis} first real work, and there was a small mistake in it, low down on the left.
{AHe} trembled, but {Ahis} hands remembered what {Ahis} eyes had seen. {AHe} did not hurry. When the last evening came, it was done. It was not perfect. It was {Ahis} own.

On the day of the feast everybody admired it. "This is your best work, {B}," they said. "It is not mine," said {B}. "It was made by {Aname}." {C} [opened {Chis} mouth and shut it again|was the first to clap].
People came from far away to see it. Even {C} came, and looked for a long time. "I told you to give up," said {C}. "I am glad that you did not listen."

{A} pointed to the mistake. "I know," said {B}. "I left one in my first work, too. It reminds us that a hand made it." And {Bhe} hung {Bhis} own {o} around {As} neck, which only masters wear.
"Now I have nothing more to teach you," said {B}, and gave {Ahim} {Bhis} {o}. "[Only one thing: when somebody knocks seven times, open.|The rest you will teach yourself.]"
"""
LEARN_MORAL = ["Who can sweep with care can do anything with care.", "Mistakes are the steps of the stair.", "A door opens to the one who keeps knocking."]
LEARN_QA = [("Who was {Aname}'s teacher?", "{B} was {Aname}'s teacher."), ("Who laughed or told {Aname} to give up?", "{C} did."), ("What did {B} give {Aname}?", "{B} gave {Aname} {ao}.")]

FAREWELL = """
It was the last week of {season}, and {B} was going away. {B} was {aB}, and {As} best friend. [They had known each other all their lives.|They had met every day for as long as {A} could remember.] On {day} {Bhe} would leave for a town on the other side of the sea.
"I have to tell you something," said {B} one {day}. {B} was {aB} and had lived next door for years. "We are moving away. Far away, where the mountains are." {A} felt as if [the ground had gone soft|somebody had put out the sun].

They decided to do everything once more. They climbed up to {P}. They [ate too much {food}|raced each other down the hill]. They sat on the wall and [did not talk at all|counted the swallows].
For a day {A} was angry and hid. But {C}, the old {Ck}, found {Ahim} at {P}. "You have five days left," said {C}. "Do you want to spend them here, without {Bhim}?" {A} thought about it, and got up.

They each made a list of what they would miss. On {As} list stood: "Your jokes. Your whistling. The way you always lose at cards." On {Bs} list stood only: "[You|Everything]."
In the evenings they made plans. "I will write to you," said {B}. "I will write first," said {A}. "[We shall look at the moon at nine o'clock, both of us|When you see the first star, think of me]," they agreed.

? On the last night they did not sleep. They lay in the grass and looked for falling stars. There was only one, and neither of them said what they wished.
? {C} took out {Chis} old violin and played for them. It was a merry tune, but they were sad all the same.

The morning came. {A} had thought of a long speech, but now it was all gone. {AHe} took off {Ahis} {o} and put it into {Bs} hand. "So that you [come back|remember the way]," {Ahe} said.
Then it was time. {B} hugged {Ahim} hard. {A} pushed the {o} into {Bhis} pocket, the one thing {Ahe} had never lent to anybody. [{BHe} could not speak.|"I will bring it back," said {B}.]

{A} waved until there was nothing to wave at. The way home was [twice as long as usual|very long]. {C} was sitting on {As} steps, with {food} and two spoons, and [asked nothing|moved aside a little].
{AHe} stood there until even the dust had settled. Then {C} came and took {Ahim} by the arm. "Come," {Che} said. "I need somebody to help me [with the apples|with my garden]."

[The first days were hard.|At first every corner was empty.] But at nine o'clock {A} went out and looked at the moon, and it was not quite so bad. And then, on a {day2}, came a letter with a foreign stamp.
Weeks went by. {A} found out that one can miss somebody and still laugh. And one evening, when {Ahe} had almost stopped waiting, there was a letter on the mat. "Dear {Aname}," it began, "I have so much to tell you."

[It was from {B}, of course.|It was from {B}, four pages long.] At the bottom stood: "I wear the {o} every day. It knows the way. So do I."
In the envelope lay a drawing of {B}, with the {o} around {Bhis} neck. [{A} hung it over {Ahis} bed.|And next {season}, it said, {Bhe} would come to visit.]
"""
FAREWELL_MORAL = ["Those we love do not go far.", "A goodbye is only as sad as the days before were good."]
FAREWELL_QA = [("Who was going away?", "{B} was going away."), ("What did {Aname} give to {B}?", "{Aname} gave {B} {Ahis3} {o}."), ("Who comforted {Aname}?", "{C} comforted {Aname}.")]

STAR = """
One night a star fell from the sky. It [hissed across the roofs of {town}|came down with a sound like a plucked string] and landed at {P}. {A}, who could not sleep, was the only one who saw it.
{A} was looking out into the night when one of the stars [came loose|slipped]. It fell and fell, and went out behind {P}. Without waking anybody {Ahe} took {Ahis} {o} and {walk} there.

There it lay in the grass, no bigger than an apple, and its light was weak. "I am cold," it said in a small voice. "My name is {B}. I was dancing, and I did not look where I was going." {A} wrapped it in {Ahis} scarf.
At {P} there was a hole in the ground, and in the hole sat a small, shining being. "Do not look so surprised," it said. "I am {B}. I am a star, and I have [hurt my fifth point|lost my way]."

{A} took {B} home and [put it on the stove|laid it into the bread basket]. What do stars eat? {A} tried {food}, and {food} it was. With every bite {B} shone a little brighter. But it looked up at the window all the time.
For three days {A} hid the star in a [milk jug|hatbox]. At night the light shone through the cracks. {B} told of [the great silence up there|comets and their long hair], and {A} told of rain, cats and Sundays.

"I must go back," said {B}, "before the moon is full, or I shall become a stone. But I do not know how." {A} did not know either. So {Ahe} went to {C}, an old {Ck}, who read many books.
"If I stay too long, my light goes out," said {B} on the third evening. {A} had known it, and {Ahe} had been afraid of it. {AHe} went to ask {C}, a {Ct} {Ck} who knew everything about the sky.

"A star cannot be thrown, and it cannot be carried," said {C}. "It rises when somebody gives it something that is hard to give." {A} thought of {Ahis} {o}. [It was the only thing that {Ahe} had from {Ahis} mother.|It was dearer to {Ahim} than anything {Ahe} had.]
{C} opened a thick book. "It says here," {Che} read, "that a star is light, but its sadness is heavy. Somebody must take the sadness off it." "How?" asked {A}. "By letting it go gladly," said {C}.

? That evening clouds covered the sky. They waited, and {C} told jokes, so that nobody had to think. At midnight the wind came and swept everything clear.
? {A} cried a little, where {B} could not see it. But stars see everything.

They climbed up to the highest roof of {town}. {A} laid the {o} beside {B} and said, "[I want you to be home|Go home. I shall know which one is you]." And {B} grew light, and lighter, and began to rise.
At {P}, where it had all begun, {A} held {B} up in both hands. "I am not sad," {Ahe} said. "I am glad that you fell." Then {Ahe} felt the hands grow light, and [a warm wind went by|something bright flew up].

Up and up it went, until it was a spark among sparks. Then one of them [blinked twice|drew a small circle]. "That one," said {A}. {C} blew {Chis} nose and said that it was the night air.
For a moment it was as bright as day. Then there was one star more in the sky, just above {P}, and it [danced|shone a little more yellow than the rest].

{A} still looks up every evening. [And on clear nights, if one knows where to look, there is a star that looks down.|And sometimes, on very quiet nights, {Ahe} hears somebody laugh, very far up.]
Ever since then {A} sleeps well. [A little light falls through the window, exactly on the pillow.|There is always a light on for {Ahim}.]
"""
STAR_MORAL = ["Letting go is the hardest gift.", "Who helps another home is never in the dark."]
STAR_QA = [("What fell from the sky?", "A star fell from the sky."), ("What was the star called?", "The star was called {B}."), ("Where did the star land?", "The star landed at {P}."), ("Who knew how to help?", "{C} knew how to help.")]

FEAST = """
The harvest had been bad, and the cupboards of {town} were nearly empty. {A} had only [one onion|three carrots] left. It was the week of the {season} feast, and everybody said that there would be no feast this year.
Snow had closed the roads to {town}. For weeks no cart had come through. "This year we cannot have the feast," said {C} the {Ck}, who was the mayor. {A} [looked at the one onion in {Ahis} basket|did not like that at all].

{A} put {Ahis} biggest pot on the square, filled it with water and made a fire. Then {Ahe} put in what {Ahe} had. [It looked very lost in there.|It swam around all alone.]
"We shall see," said {A}. {AHe} borrowed the great copper pot from {P}, rolled it to the middle of the square, and lit a fire under it.

{B} came by, {aB} who was [always hungry|curious]. "What are you cooking?" {Bhe} asked. "A feast," said {A}, "but something is missing." {B} looked left and right. "I may have a [handful of beans|piece of cheese]," {Bhe} whispered. "I was hiding it."
The first to come was {B}, {aB}. {BHe} sniffed. "That smells of nothing," {Bhe} said. "It smells of the beginning," said {A}. {B} thought it over, went home, and came back with [two potatoes|a cabbage].

When the others saw that {B} had given something, they went home, too. One brought a bone, another brought salt, the third brought [a song, because that was all she had|an old hen that had died of age]. Each was a little ashamed that it was so little.
A door opened, then another. A child brought a turnip. A widow brought [pepper in a twist of paper|a jar of butter]. "It is not much," they all said. "[It is one more|Put it in]," said {A} each time.

? Only {C} stood at the window and did not come. {CHe} had a whole ham in {Chis} cellar, and it grew heavier on {Chis} heart from hour to hour.
? Toward evening it began to snow again, but around the pot it was warm, and nobody left.

At last {C} came, red in the face, and laid a ham on the table. "I was keeping it for bad times," {Che} said. "[Are these not bad times?|And then I saw that they are here.]" "Not any more," said {A}.
Then {C} {walkC} across the square with a sack of flour on {Chis} back. "I said that there was nothing left," {Che} said quietly. "That was not true." {A} [gave {Chim} the big spoon|only smiled and moved the pot]. "Stir," {Ahe} said.

[They ate until midnight.|What a feast it was!] Nobody could say what the soup tasted of, for it tasted of everything. {B} had four bowls. Somebody played [the fiddle|the accordion], and they danced in the snow.
There was enough for everyone, and then there was still some left. {B} licked the ladle. {C} sang, badly and happily. [The old people said that it was the best feast they had ever had.|And the pot was as clean as a mirror.]

When the roads were open again and the carts came, there was plenty of everything. But every {season} they cook the soup on the square, and everybody may bring only [one thing, and a small one|as much as fits into one hand].
{A} took {Ahis} spoon and went home. "What was in it?" a child asked {Ahim} on the way. "One onion," said {A}, "and {town}."
"""
FEAST_MORAL = ["Little and little and little is much.", "Nobody has enough alone, and everybody has enough together."]
FEAST_QA = [("Who was the first to bring something?", "{B} was the first."), ("Who had been hiding food until the end?", "{C} had been hiding food."), ("Where did {Aname} cook the soup?", "{Aname} cooked the soup on the square.")]

SONG = """
{A} had the most beautiful voice in {town}, but nobody knew it. {AHe} sang only [when {Ahe} was alone|at {P}, where there was nobody to hear it]. As soon as somebody looked at {Ahim}, not a sound came out.
Whenever {A} was alone, {Ahe} sang. {AHe} sang of [rain and bridges|the sea and what lies behind it]. But before other people {Ahis} throat closed up like a door.

One evening {B} was passing by {P}. {B} was {aB} who had been sad for a long time. {BHe} heard the song and stood still. The next day {Bhe} told everyone, "There is somebody at {P} who sings like [the morning|running water]."
{B}, {aB} with [a broken heart|a heavy step], heard {Ahim} one night through the wall. {BHe} slept well for the first time in a year. "Who was that?" {Bhe} asked all over town. Nobody knew.

Soon there was a great guessing in {town}. {C}, a {Ct} {Ck}, [claimed that it was a bird|said that it was {Chim}self]. {A} heard it and turned red and said nothing.
"We shall find the singer," said {C}, a {Ct} {Ck}, "and {season} will begin with a concert." They asked the tall ones and the loud ones. They did not ask {A}, who was [pouring the tea|standing in the corner].

? {A} tried it before the mirror. {AHe} tried it before the cat. The cat left the room, but that was only because it was hungry.
? At night {Ahe} dreamed of a thousand faces, and all of them were waiting.

On {day} all the people came together on the square. One after the other they sang, but none of them was the one. {B} sat in the last row, and [the sadness came back to {Bhis} face|{Bhis} head sank lower and lower]. {A} saw it.
Then {B} fell ill. {BHe} lay with {Bhis} face to the wall. "If I could hear that song once more," {Bhe} said. {A} stood outside the door, with {Ahis} {o} in {Ahis} hand and {Ahis} heart in {Ahis} mouth.

{A} closed {Ahis} eyes. {AHe} thought of {P}, of the quiet there. And very softly {Ahe} began. The first note shook. The second did not. [At the third, everybody turned around.|By the third it was as still as in snow.]
"Turn around, all of you," {A} whispered, "and do not look at me." They turned around, every one of them. And behind their backs {Ahe} began to sing.

When the song was over, nobody clapped for a long time. Then {B} stood up. "Thank you," {Bhe} said. "It was you." {A} opened {Ahis} eyes and saw that [nobody was laughing|they were all crying a little, even {C}].
The last note hung in the air. Slowly they turned to {Ahim}. {B} had red cheeks again. "Once more," said {B}, "please. And this time I should like to see who is singing." And {A} sang once more.

Since then {A} sings every {day2} on the square. {AHe} still closes {Ahis} eyes for the first note. [But only for the first.|For the rest {Ahe} looks at {B}, who always sits in front.]
There is a bench at {P} now, with a little sign: "Here it began." [And sometimes, in the evening, one can hear two voices there.|{B} comes there often, and {Bhe} hums.]
"""
SONG_MORAL = ["What we hide may be just what somebody needs.", "The first note is the hardest."]
SONG_QA = [("Where did {Aname} sing alone?", "{Aname} sang at {P}."), ("Who heard the song first?", "{B} heard the song first.")]

VOYAGE = """
In a shed near {P} lay an old boat, and {A} had bought it for [a song|three coins and {ao}]. "You will sink," said {C} the {Ck}. "We shall see," said {A}, and painted a name on it: Hope.
{A} had always wanted to know what was on the other side of the water. So {Ahe} built a boat. It took {Ahim} [a year|two winters], and it was a little crooked. {C}, a {Ct} {Ck}, walked around it and said, "It will not even float."

{B}, {aB} who could read the stars, wanted to come along. "I can steer," {Bhe} said, "and I eat very little." The second was not true, but the first was. On {day} they pushed off.
It did float. {B}, {aB} and a friend of many years, took the other oar. They had {food} for a week, a barrel of water, and the {o} [to bring them luck|to tell them the way].

For two days the sea was smooth and kind. [Dolphins swam beside them.|They told each other everything they knew.] On the third day the wind fell asleep, and the sail hung down like washing.
The first night was full of stars, above and below. {B} steered and {A} kept watch. [Neither of them had ever been so far from home.|Nothing could be heard but the water.]

Then the sky went dark. A wave as high as a house came over them and took [the mast|both oars] along. {A} held on to {B}, and {B} held on to the {o}. "Bail!" shouted {B}, and they bailed with their hats until morning.
In the night the storm came. The boat climbed up the waves and fell down again. {A} was so seasick that {Ahe} [forgot to be afraid|could only laugh]. A plank broke. {B} sat down on the hole and stayed there till the wind was tired.

? When it was light again, they had no idea where they were. "That is interesting," said {B}. "Now we can only be wrong by half."
? They had one piece of {food} left. {A} cut it into two and gave {B} the larger half. {B} noticed it, and said nothing, and later gave it back.

On the [fifth|seventh] morning they saw land. It was an island, [green as a frog|shaped like a hat], and on the beach stood somebody and waved. It was an old sailor who had been stranded there for ten years with [a parrot|nobody but the crabs].
At last a strip of land came out of the mist. There was an island with [warm springs and no people|red trees and white sand], and in the sand a bottle, and in the bottle a note: "Whoever finds this, please take my love to {town}."

They had come to find [gold|new lands], perhaps. But now they had something better: somebody was waiting to be told. They mended the boat with driftwood, and the wind, for once, [blew the right way|was polite].
{A} and {B} looked at each other. Then they began to repair the boat. "So that is what we came for," said {A}. "It is better than gold," said {B}. "It weighs less."

When the crooked little boat came into the harbour, {C} stood on the pier with {Chis} mouth open. "[It did not sink|So it floats]," {Che} said. "It did, a little," said {A}. "May I come along the next time?" asked {C}.
All {town} ran to the harbour. {A} told the story from beginning to end, and {B} [corrected the numbers|told it again, longer]. {C} bought them dinner, and asked how one builds such a boat.
"""
VOYAGE_MORAL = ["Whoever wants to know must push off.", "A crooked boat goes farther than a straight one in a shed."]
VOYAGE_QA = [("Who sailed with {Aname}?", "{B} sailed with {Aname}."), ("Who said that the boat would not float?", "{C} did.")]

PLOTS = [("letter", LETTER, LETTER_MORAL, LETTER_QA, ["a letter", "a long way", "forgiveness"]),
         ("quarrel", QUARREL, QUARREL_MORAL, QUARREL_QA, ["a quarrel", "two friends", "making peace"]),
         ("learn", LEARN, LEARN_MORAL, LEARN_QA, ["learning", "a teacher", "hard work", "practice"]),
         ("farewell", FAREWELL, FAREWELL_MORAL, FAREWELL_QA, ["saying goodbye", "a farewell", "a friend who moves away", "missing somebody"]),
         ("star", STAR, STAR_MORAL, STAR_QA, ["a star", "a falling star", "the night sky", "letting go"]),
         ("feast", FEAST, FEAST_MORAL, FEAST_QA, ["a feast", "winter", "soup", "sharing", "hunger"]),
         ("song", SONG, SONG_MORAL, SONG_QA, ["a song", "music", "singing", "being shy"]),
         ("voyage", VOYAGE, VOYAGE_MORAL, VOYAGE_QA, ["the sea", "a boat", "a voyage", "an island", "sailing"])]
