import { render } from "preact";
import { Root } from "./root.tsx";
import "@xterm/xterm/css/xterm.css";
import "./style/base.css";
import "./style/layout.css";
import "./style/controls.css";
import "./style/tiles.css";
import "./style/table.css";
import "./style/overlays.css";
import "./style/pages.css";

const place = document.getElementById("app");
if (place !== null) render(<Root />, place);
