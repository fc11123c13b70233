"""The controller and the steps of one training iteration."""
