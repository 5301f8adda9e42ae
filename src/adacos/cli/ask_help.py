"""What may be typed in a consultation in the terminal."""

WHILE_ASKED = """\
Type the value (yes and no do for 1 and 0), or
  skip           it is not available
  order          it is ordered, its result comes later
  undo           take the last answer back
  why            show the reasons, in numbers
  other          show all open questions, with what they cost
  because TEXT   say why you depart from what is advised
  NAME=VALUE     enter another value instead
  stop           get the result now
  help, quit"""
WHILE_CONFIRMED = """\
This value was given before the questions began, and looks like a slip. Type
  the same value   it is right
  another value    it takes its place
  quit             end without a result"""
AFTERWARDS = """\
Press enter to finish, or type
  NAME=VALUE     enter a further value
  undo           take the last answer back
  because TEXT   say why you departed from what was advised
  why            show the reasons, in numbers"""
