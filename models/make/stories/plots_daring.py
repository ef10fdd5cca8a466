"""Plots about fear, storms, contests, tricks and mysteries. How to read a plot: see telling.py."""

FEAR = """
{A} was afraid of [the dark|deep water|thunder|high places]. {AHe} had never told anybody. [When the others went out to play at dusk, {Ahe} always had a headache.|{AHe} had become very good at finding excuses.]
Everybody thought that {A} was brave. {AHe} [talked loudly|told the best adventures] and laughed at everything. But in truth there was one thing that frightened {Ahim} more than anything: [the dark|the sound of thunder|standing high above the ground].

Then came the {day} on which {B} did not come home. {B} was {aB}, and {As} [little neighbour|dearest friend]. "I saw {Bhim} go toward {P}," said {C} the {Ck}. "And a storm is coming up."
One evening {C}, a {Ct} {Ck}, knocked at {As} door, out of breath. "It is {B}," {Che} said. "{BHe} went to {P} this morning and has not come back." {B} was the smallest {Bk} in {town}, and {A} was very fond of {Bhim}.

{As} heart beat like a drum. Outside it was already [black|growing dark], and the wind howled. {AHe} looked at {Ahis} warm [bed|chair by the fire]. Then {Ahe} took {Ahis} {o} and stepped out.
[For a moment {A} could not move.|{A} felt cold all over.] {AHe} could say that {Ahe} was ill. {AHe} could say that {Ahe} was busy. But {Ahe} thought of {B}, alone out there, and {Ahis} feet began to move by themselves.

Step by step {Ahe} {walk} on. To keep up {Ahis} courage, {Ahe} [sang every song {Ahe} knew|counted {Ahis} steps|talked to {Ahis} {o} as if it were a friend]. {AHis} voice shook, but {Ahe} did not stop.
The way had never been so long. Every bush looked like a [wolf|giant], and every branch like an arm. "You are only a bush," said {A} to the bush. "And you are only a branch." [It helped a little.|Saying it aloud made it true.]

? Lightning flashed. {A} crouched down and shut {Ahis} eyes. "I am afraid," {Ahe} said aloud, for the first time in {Ahis} life. And strangely, the moment {Ahe} had said it, the fear grew smaller.
? Once {Ahe} turned around and ran back ten steps. Then {Ahe} stopped, took a deep breath, and went forward again, eleven steps this time.

At last {Ahe} reached {P}. "{B}!" {Ahe} called. "{B}!" And from far below came a thin voice: "Here I am! I cannot get out!" {B} had [fallen into a pit|slipped down a steep bank] and hurt {Bhis} foot.
At {P} {Ahe} stood still and listened. There was the wind, and the rain, and under it something else: somebody was crying. {B} sat [in a hole|on a narrow ledge] and could go neither up nor down.

{A} tied {Ahis} {o} to [a rope of twisted grass|{Ahis} long scarf] and let it down. "Hold on to it," {Ahe} called, "and do not look down. Look at me." {AHe} pulled with all {Ahis} strength, and slowly, slowly {B} came up.
There was no time to think. {A} climbed down, took {B} on {Ahis} back, and climbed up again, one hold at a time. [Afterwards {Ahe} could not say how {Ahe} had done it.|Not once did {Ahe} think of being afraid.]

"You came," said {B}. "I thought that nobody would dare." "I was afraid the whole way," said {A}. {B} looked at {Ahim} with wide eyes. "And you came all the same?" {Bhe} said. "Then you are the bravest of all."
They waited under a rock until the rain was over. "Were you not afraid?" asked {B}. "Terribly," said {A}. "I still am, a little." "I would not have known," said {B}, and [fell asleep against {Ahis} shoulder|held {Ahim} tight].

When they came home, all the lamps of {town} were lit. {C} had put {food} on the table. [Nobody asked much.|They talked all at once.] And from that day on, when {A} was afraid, {Ahe} said so.
In the morning the whole town was waiting. {C} [cried for joy|rang the bell]. {A} ate two plates of {food} and slept until noon. {AHe} is still afraid sometimes. But now {Ahe} knows that one can be afraid and go on walking.
"""
FEAR_MORAL = ["Brave is not who knows no fear, but who goes on walking.", "Say that you are afraid, and the fear grows smaller."]
FEAR_QA = [("Who was missing?", "{B} was missing."), ("Where was {B}?", "{B} was at {P}."), ("Who told {Aname} that {B} was missing?", "{C} told {Aname}.")]

STORM = """
The storm came [in the middle of the night|without any warning]. [It shook the windows and tore at the roof.|The rain drummed on the roof like a thousand fingers.] {A} was just about to go to bed when somebody knocked.
It was the worst night of {season}. Rain fell so thick that one could not see the next house. {A} had barred the door and lit the fire, when there came three slow knocks.

On the step stood {B}, {aB} whom {Ahe} had never seen before. {BHe} was wet to the bone. "[Please, may I come in until it is over?|I saw your light,]" {Bhe} said.
Outside stood a stranger: {aB}, soaked and shaking, with {ao} under one arm. "My name is {B}," {Bhe} said. "I have knocked at every door in {town}. Yours is the last."

{A} had been told never to open to strangers. {AHe} also had very little: one chair, one bowl, and [the heel of a loaf|half a pot of soup]. {AHe} opened the door wide. "Come in," {Ahe} said, "before the storm comes in with you."
[{A} did not have to think.|{A} thought about it for one breath.] "Sit by the fire," {Ahe} said. {AHe} gave {Bhim} the dry blanket from {Ahis} own bed and the last of the {food}.

They sat by the fire and listened to the wind. {B} told of [cities with golden roofs|islands where the sand sings|mountains that nobody has climbed], and {A} told of small things: [the leak in the roof and the neighbour's goat|the garden, the well and the old stove].
{B} ate slowly and with great care. Then {Bhe} began to tell stories, [one after the other|each better than the last], and {A} forgot the storm, the cold and the late hour.

? "Why does nobody else open?" asked {B}. "They are afraid," said {A}. "So am I. But you were the one standing in the rain."
? At midnight the wind took a piece of the roof. They climbed up together and held it down with ropes until it was nailed fast. When they came in, both were dripping, and both were laughing.

In the morning the sky was clear and the chair was empty. {B} had gone without a sound. But on the table lay {ao2}, and beside it a note: "For the one who opened."
When {A} woke up, the sun was shining. The blanket was folded and {B} was gone. Only [{Bhis} footprints|a trail of wet steps] led to the door. On the table stood {ao2}.

{A} showed it to {C}, the {Ck}, who knew about such things. {C} turned pale. "Do you know who that was?" {Che} asked. "That was [the king of the mountains|the North Wind|the old storm master]. {BHe} visits one town every year." "{BHe} seemed lonely," said {A}.
The neighbours came running. "We heard knocking all night," said {C} the {Ck}, "and we hid under our beds!" {A} looked at the {o2}. "It was only {B}," {Ahe} said. "You would have liked {Bhim}."

From that day on, no storm ever touched {As} roof. [Rain fell to the left of it and hail to the right.|The wind went around it on tiptoe.] And on wild nights {Ahe} always put a second bowl on the table.
Ever since, when the wind rises, {A} puts a lamp into the window. [So far nobody else has knocked.|Now and then somebody knocks.] And in {town} people open their doors a little more quickly than before.
"""
STORM_MORAL = ["An open door keeps out more than a locked one.", "Give the last bowl, and you will not go hungry."]
STORM_QA = [("Who knocked at the door?", "{B} knocked at the door."), ("What did {B} leave on the table?", "{B} left {ao2} on the table."), ("Who told {Aname} about it in the morning?", "{C} the {Ck} did.")]

RACE = """
Every year in {season} there was a great race from {town} to {P}. The winner got {ao2}. {A} had never won. In fact {Ahe} had never even [finished|been in the first ten].
"Who is the fastest in {town}?" somebody asked, and that was how it began. A race was to be run, all the way to {P}, and the prize was {ao2}. {A} [put down {Ahis} name with a shaking hand|wrote {Ahis} name at the bottom of the list].

{B} laughed when {Bhe} saw it. {B} was {aB}, the quickest for miles around, and {Bhe} knew it. "You?" {Bhe} said. "I could win with a sack of potatoes on my back." {A} said nothing. {AHe} only [tied {Ahis} laces|looked at the ground].
Everybody expected {B} to win. {B} was {aB} who [did everything fast: eating, talking, even sleeping|had won three years in a row]. "Do not hurt yourself," {Bhe} told {A}, not unkindly.

{A} practised every morning before sunrise. {C}, an old {Ck}, sat on the fence and watched. "You start too fast," {Che} said one day. "Run as if you had to run for ever. Then you only have to stop a little earlier."
For six weeks {A} trained. When it rained, {Ahe} ran in the rain. {C}, a {Ck} who had once been a runner, [gave {Ahim} one piece of advice|took {Ahim} aside]: "Do not look at the others. Look at the road."

The day came. A bell rang, and off they went. {B} was [out of sight|far ahead] before {A} had passed the first tree. {A} thought of what {C} had said, and {walk} and ran, and ran and {walk}, always at the same pace.
On the day of the race all of {town} stood along the road. The bell rang! {B} shot away like an arrow. {A} came [last|almost last], but {Ahe} kept {Ahis} breath and did not look left or right.

? Halfway there was a table with cold lemonade. Nearly everybody stopped and talked. {A} drank one glass, said thank you, and ran on.
? It grew hot. One after the other gave up and sat down in the shade. {A} passed the tenth, the ninth, the eighth. {AHe} did not count them.

Near {P} {Ahe} saw somebody on the ground. It was {B}. {BHe} had [run into a thorn bush|twisted {Bhis} foot between two stones]. There was nobody else on the road. If {A} ran on now, {Ahe} would win.
And then, at the last bend, there was {B}. {BHe} sat in the dust and held {Bhis} foot. The end of the race was so near that one could [see the flags|hear the music]. {A} slowed down.

{A} looked at the flags, and {Ahe} looked at {B}. "Come on," {Ahe} said, "lean on me." So they limped along together, and [two others|somebody else] ran past them, and they crossed the line side by side.
"Run!" said {B}. "You can win!" "[I know|Yes]," said {A}, and {Ahe} bent down and took {Bhim} on {Ahis} back. It was the slowest end of a race that anybody had ever seen.

They did not get the {o2}. It went to a surprised [goose|baker's boy] who had only come to watch and had run along by mistake. But when {A} and {B} came in, the people of {town} [cheered until they were hoarse|threw their hats into the air].
The {o2} went to somebody else. But that evening {B} stood up before everyone. "I have won three races," {Bhe} said, "and today I lost one and learned more." Then {Bhe} gave {A} {Bhis} own {o}.

Since then {A} and {B} train together. [One is fast, the other is steady.|In the morning you can see them on the road.] And old {C} sits on the fence and tells them what they do wrong.
Now they run every morning, side by side, past {C} on the fence. [Sometimes one is ahead and sometimes the other.|Nobody counts who wins.] 
"""
RACE_MORAL = ["Some races are won by stopping.", "Better to come in late together than early alone."]
RACE_QA = [("Where did the race end?", "The race ended at {P}."), ("What was the prize?", "The prize was {ao2}."), ("Who gave {Aname} advice?", "{C} gave {Aname} advice."), ("Who was hurt?", "{B} was hurt.")]

TRICK = """
There was once {aB} called {B} who [owed something to everyone in {town}|lived by tricks]. {BHe} could talk a bird out of its nest. One day it was {As} turn.
In {town} people had learned to hold on to their purses when {B} came by. {B} was {aB}, and the slyest for miles around. Only {A} was not warned, for {A} was new in town.

"What a pretty {o}," said {B}. "But is it real? I know a way to find out. Lend it to me for one night." {A} [was polite and did not like to say no|thought nothing of it] and gave it to {Bhim}. The next day {B} said, "What {o}? [I have never seen {ao} in my life.|You must have dreamed it.]"
"I will make a bet with you," said {B}. "If I can make you say the word 'no', your {o} is mine." "All right," said {A}. "Have you played this before?" asked {B} at once. "No," said {A}. And [so the {o} was gone|{B} walked off with the {o}].

{A} went home and did not sleep. {AHe} was not angry about the {o} as much as about having been [so simple|made a fool]. Toward morning {Ahe} had an idea.
{A} told it to {C}, an old {Ck} and a good listener. {C} scratched {Chis} chin. "You cannot catch {aB} by running," {Che} said. "You must let {Bhim} come to you." And they [put their heads together|made a plan].

The next day {A} sat down at {P}, where everybody passes, with a big locked box in front of {Ahim}. {AHe} [smiled and said nothing|hummed a song]. When people asked what was inside, {Ahe} only said, "Something that {B} must never see."
Soon a rumour went through the town: {A} had dug up something at {P}, so precious that it had to be kept in a box with three locks. [{C} had told it to the baker, and the baker had told everyone.|Nobody knew where the rumour came from, but {C} was smiling.]

It did not take an hour before {B} was there. "What is in the box?" {Bhe} asked. "I cannot tell you," said {A}. "What do you want for it?" asked {B}. "[It is worth much more than {ao}|Oh, something much better than {ao}]," said {A}. 
{B} could not [eat|sleep] for curiosity. By evening {Bhe} stood before {A}. "Sell me the box," {Bhe} begged. "I will give you this {o} for it." "You said that there was no {o}," said {A}. {B} [coughed|turned red]. "I have found it again," {Bhe} said.

? {A} pretended to think it over for a long time. {B} hopped from one foot to the other. "And your hat," said {A}. {B} took off {Bhis} hat.
? "Do you promise never to complain, whatever is inside?" asked {A}. "I promise!" cried {B}, before all the people.

So they traded. {B} ran home with the box and broke the three locks. There was nothing inside but a mirror, and under it was written: "Here you see the only one who can cheat you now."
{B} put the {o} into {As} hands, seized the box and tore it open then and there. It was empty, except for a slip of paper: "[Now we are even.|One good trick deserves another.]" Everybody laughed, and the loudest was {C}.

For a moment {B} was furious. Then {Bhe} began to grin, and then to laugh. "[That was the best trick I ever saw|I have met my master]," {Bhe} said. "Teach it to me." "I will," said {A}, "if you bring back what you took from the others."
{B} sat down on the ground. Nobody had ever tricked {Bhim} before. "So that is how it feels," {Bhe} said after a while. And the next day, one by one, people found their lost things [on their doorsteps|hanging on their doors].

From then on {B} used {Bhis} cleverness for better things, mostly. [On {day}s {Bhe} does card tricks for the children.|And {A} always has the last laugh.] The {o} hangs in {As} window, where all can see it.
They became friends in the end, {A} and {B}. But when they play cards, {A} still [counts them afterwards|keeps the {o} in {Ahis} pocket].
"""
TRICK_MORAL = ["Who digs a pit for others should mind where he steps.", "The clever are caught by their own curiosity.", "A trick is a coin that always comes back."]
TRICK_QA = [("What did {B} take from {Aname}?", "{B} took {Ahis3} {o}."), ("Who helped {Aname}?", "{C} helped {Aname}."), ("Where did {Aname} live?", "{Aname} lived in {town}.")]

MYSTERY = """
Something was wrong in {town}. Every night something disappeared: first [a pie|a cake], then [a left shoe|one red sock], then the {o} from the wall of {P}. And nobody had seen a thing.
"My {o} has been stolen!" cried {C}, and the whole of {town} woke up. {C} was a {Ct} {Ck}, and the {o} had [been in the family for a hundred years|hung at {P} as long as anyone could remember].

There was only one who could solve this: {A}. {AHe} was {aA} with [a notebook, a magnifying glass and a good nose|sharp eyes and a great deal of patience]. {AHis} friend {B}, {aB}, always came along to carry the lamp.
{A} loved riddles. {AHe} took {Ahis} notebook and [sharpened {Ahis} pencil|put on {Ahis} hat]. {AHis} friend {B}, {aB}, came along to hold the lamp. 

"Let us look at what we have," said {A}. On the windowsill there was [a green feather|a thread of blue wool|a little flour]. On the floor there were small wet footprints. "The thief came from the river," said {A}.
{A} went down on {Ahis} knees. There were crumbs on the floor, and the crumbs made a line. "A thief who eats while he works," said {A}. "[He was not in a hurry.|That is either very brave or very hungry.]"

{A} asked everyone the same question: "Where were you last night?" The baker had been baking. The postman had been asleep. {B} had been [reading|at home with a cold]. Only {C} [could not remember|blushed and looked at the ceiling].
They asked the neighbours. One had heard a [humming|soft singing]. Another had seen a light going up and down the stairs. "[A thief does not sing|Thieves do not carry lamps]," murmured {A}. "How strange."

? {A} did not sleep that night. {AHe} lay behind a barrel at {P} and waited. At [two|three] o'clock a door creaked.
? {A} wrote everything down, drew a line under it, and looked at it for an hour. Then {Ahe} laughed. "Of course," {Ahe} said. "Nobody broke in, because nobody had to."

Out of the dark came a figure in a nightgown, with closed eyes, humming. It was {C}! {CHe} was fast asleep. {CHe} took a spoon from the wall, put it into {Chis} pocket, and walked slowly away.
That night they followed the light. And who came down the stairs, with a candle in one hand and eyes shut? {C}, the {Ck}! {CHe} was walking in {Chis} sleep.

They followed on tiptoe to [an old shed|a hollow tree]. There lay everything in a neat heap: the things from all over town, and the {o} on top. {C} put the new piece down, patted it, and said in {Chis} sleep, "So that nobody is cold."
{C} {walkC} to [the cellar|a dusty corner of the attic] and laid {Chis} candle down. There stood all the lost things in a row, like guests at a party, with the {o} in the middle.

In the morning {A} called everybody together and explained. {C} was [so ashamed that {Che} hid {Chis} face|more surprised than anyone]. "I stole my own {o}?" {Che} said. But nobody was angry, and somebody began to laugh, and then they all did.
When {C} heard it, {Che} turned red. "I had been dreaming that I gave a party," {Che} said, "and that nobody came." The people of {town} looked at each other. [The next evening they all came, with {food}.|Then they decided to have that party.]

And so the case was closed. {A} tied a little bell to {Cs} door, and {B} [wrote it all down|made a song about it]. In {town} nothing disappears any more, except {food}.
{A} shut {Ahis} notebook. "Solved," {Ahe} wrote at the bottom. And {B}, who had held the lamp all night, [was asleep in the chair|was already asking what the next case would be].
"""
MYSTERY_MORAL = ["Look for the reason before you look for the thief.", "Not everything that is taken is stolen."]
MYSTERY_QA = [("Who solved the mystery?", "{Aname} solved the mystery."), ("Who took the things?", "{C} took the things."), ("Why did nobody see the thief?", "Because {C} was walking in {Chis} sleep."), ("Where had the {o} been?", "The {o} had been at {P}.")]

WISH = """
While {A} was [fishing|resting] at {P}, something tugged at {Ahis} sleeve. It was {B}, a tiny {Bk} who glowed like a lamp. "You are sitting on my door," said {B}. "If you get up, I will grant you a wish." {A} got up.
{A} pulled a thorn out of the foot of a small, silver {Bk}. "My name is {B}," said the {Bk}, "and because you helped me without asking who I am, you have three wishes. Use them well."

First {A} wished for {food}, because {Ahe} was hungry. There was a bang, and {food} fell from the sky: on the roof, on the road, on the head of {C} the {Ck}. It fell for an hour. [{A} ate until {Ahe} could not see it any more.|After that nobody in {town} wanted to see {food} for a month.]
"I wish I had {ao2}," said {A}. At once it stood before {Ahim}, and it was so big that it [filled the whole room|would not go through the door]. "I should have said how big," sighed {A}.

{C}, the {Ck} from next door, [had seen everything|came running]. "Wish for gold!" {Che} cried. "Wish for a palace! Wish that you were king!" {A} thought about it. [A palace has many rooms to sweep.|A king must get up early and wave.]
Then {A} wished that {Ahe} could fly. It was wonderful for as long as it lasted, and it lasted [until the top of a very tall tree|until lunch]. It took {C}, a {Ct} {Ck} with a long ladder, all afternoon to get {Ahim} down.

? That night {A} could not sleep. {AHe} lay there and thought of all the things one can wish for, and the longer {Ahe} thought, the less {Ahe} wanted them.
? People came from far away and told {A} what to wish for. One wanted sun, another wanted rain. They quarrelled in front of the house until it was dark.

There was one wish left. {A} {walk} through {town} and looked around. {AHe} saw {C} sitting alone at the window, as {Che} did every evening. {C} had [been ill for a long time|not laughed since last winter]. Then {A} knew.
In the morning {A} heard that {C} was ill, so ill that the doctor only shook his head. {A} did not have to think any longer. {AHe} ran all the way to {P}.

"I have made up my mind," said {A} to {B}. "I wish that {C} may be well and happy." "Is that all?" asked {B}. "Nothing for yourself?" "That is for myself," said {A}. "[It is no fun to be happy alone.|I like it when {Che} laughs.]"
"My last wish is not for me," {Ahe} said. "Make {C} well again." {B} looked at {Ahim} for a long time, and {Bhis} light grew very bright. "Nobody has ever used the last one like that," {Bhe} said.

The next day {C} stood in {Chis} garden and sang so loudly that [the cats ran away|the windows shook]. {B} was never seen again. But on {As} windowsill lay {ao}, and when it is dark, it glows a little.
When {A} came home, {C} was sitting on the steps and [laughing at a joke {Che} had told {Cself}|eating bread and butter]. "I feel as if I were new," {Che} said. {A} sat down beside {Chim} and wished for nothing at all.
"""
WISH_MORAL = ["The best wish is for somebody else.", "Be careful what you wish for, and careful for whom.", "Happiness shared is the only kind that stays."]
WISH_QA = [("Who granted the wish?", "{B} granted the wish."), ("Who did {Aname} help with the last wish?", "{Aname} helped {C}."), ("Where did {Aname} meet {B}?", "{Aname} met {B} at {P}.")]

PLOTS = [("fear", FEAR, FEAR_MORAL, FEAR_QA, ["courage", "being brave", "being afraid", "a rescue"]),
         ("storm", STORM, STORM_MORAL, STORM_QA, ["a storm", "a stranger", "a rainy night", "kindness"]),
         ("race", RACE, RACE_MORAL, RACE_QA, ["a race", "winning and losing", "fair play", "a contest"]),
         ("trick", TRICK, TRICK_MORAL, TRICK_QA, ["a trick", "cleverness", "a bet", "a thief"]),
         ("mystery", MYSTERY, MYSTERY_MORAL, MYSTERY_QA, ["a mystery", "a detective", "a riddle", "a night"]),
         ("wish", WISH, WISH_MORAL, WISH_QA, ["a wish", "magic", "three wishes", "happiness"])]
