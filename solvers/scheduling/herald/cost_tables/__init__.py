"""What every layer costs on every engine: tables that are searched for once and kept."""
