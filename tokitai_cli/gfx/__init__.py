"""Machine code of AMD's gfx11: read (`code`) and run on the processor (`run`)."""
