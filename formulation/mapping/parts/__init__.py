"""Problems of parts of a machine, which bound what the whole costs."""
