"""The deciders of the policies: along a set sequence, through a tree, by a plan."""
