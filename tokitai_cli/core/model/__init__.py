"""Ground floor: frozen data, enums, the device protocol and the progress events. No I/O."""
