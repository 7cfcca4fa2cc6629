"""From the drive to the GPU: drives, loader processes, and what limits them."""
