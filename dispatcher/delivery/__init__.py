"""One attempt: what is sent, where it may go, how it is signed, and what came back.

Nothing is imported here: the transports need libraries that only a live dispatcher has.
"""
