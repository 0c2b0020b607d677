// The one entry point. Each module looks for its own data attributes and does nothing where they are absent.
import "./theme.js";
import "./menu.js";
import "./toast.js";
import "./studio.js";
import "./picker.js";
import "./sound.js";
import "./live.js";
import "./wave.js";
import "./listen.js";
import "./parts.js";
import "./bulk.js";
import "./ask.js";
import "./textfile.js";
import "./palette.js";
import "./shortcuts.js";
import "./clip.js";
import "./copy.js";
