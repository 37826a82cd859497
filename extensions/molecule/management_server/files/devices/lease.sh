#!/bin/sh
# Script that udhcpc calls. Prints all values of the lease, one per line.
[ "$1" = bound ] && env
exit 0
