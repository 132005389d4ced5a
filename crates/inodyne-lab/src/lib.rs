//! Prepare: file systems, mounts, data trees and caches, all undone on any exit.
