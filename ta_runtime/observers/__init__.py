"""What watches the run: each module here attaches to one part of torch, notes what passes, and lets go again."""
