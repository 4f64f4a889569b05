"""Self-contained HTML reports: tables that sort, plots that respond, nothing loaded from elsewhere."""
