// The page that makes a voice: a microphone or a file, what was taken, and what is said about it.
import "./upload.js";
import "./taken.js";
import "./recorder.js";
