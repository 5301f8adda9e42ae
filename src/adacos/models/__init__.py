"""Models: what is learned from a table, independent of what a wrong answer costs.

The additive basis and its fits, `LogisticGAM`, the set sequence S_1 ⊂ … ⊂ V, one model per set,
the lookahead to later sets (densities and lookahead), and what is known from the start. Nothing
here decides whether to acquire.
"""
