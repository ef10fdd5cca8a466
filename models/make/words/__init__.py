"""Every word the corpus knows, by kind. All lists were written for this project."""
