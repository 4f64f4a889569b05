"""Loop nests with sizes and orders that may be open: blocks, orders, arrangements of storage, remainders."""
