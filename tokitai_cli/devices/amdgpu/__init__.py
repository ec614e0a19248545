"""Machine code of AMD's gfx11: seen into (`inspection`) and run on the processor (`run`)."""
