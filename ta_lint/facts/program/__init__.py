"""The project as one program: which file an import means, and what that file defines."""
