// Plays the addon and the example of Godot: the GDScript itself, over a JavaScriptBridge that
// behaves as that of
// Godot 4 web exports does (platform/web in its sources).
import { runScript, Signal } from "./gdscript.js";
import { addButton, addText, readSource, roll } from "./screen.js";

// Members that JavaScriptObject has itself, as an Object of the engine: those of the page are
// hidden by them.
const ownMembers = new Set(["call", "callv", "get", "set", "connect", "disconnect", "emit_signal", "free", "has_method",
  "has_signal", "is_class", "notification", "get_class", "get_script", "reference", "unreference", "tr"]);

const objects = new WeakMap<object, unknown>(); // the value of the page that a JavaScriptObject stands for

/** Numbers, texts, booleans and objects of the page arrive; arrays and dictionaries do not. */
const toPage = (value: any): unknown =>
  value === null || typeof value !== "object" ? value : objects.has(value) ? objects.get(value) : undefined;

function toEngine(value: any): any {
  if (value === undefined || value === null) return null;
  if (typeof value !== "object" && typeof value !== "function") return value;
  const wrapper = new Proxy({}, {
    get(_, name: string) {
      if (ownMembers.has(name)) throw new Error(`${name} is a member of JavaScriptObject itself`);
      return (...args: unknown[]) => toEngine(value[name](...args.map(toPage)));
    },
  });
  objects.set(wrapper, value);
  return wrapper;
}

const JavaScriptBridge = {
  get_interface: (name: string) => name in window ? toEngine((window as any)[name]) : null,
  create_callback(listener: (args: unknown[]) => unknown) {
    const callback = {};
    objects.set(callback, (...args: unknown[]) => {
      // The engine gives one array, and frees what no variable of the script holds.
      if (Object.values(Parlor).includes(callback)) listener(args.map(toEngine));
    });
    return callback;
  },
};

/** Nodes of the scene; texts and buttons are elements. */
class Label {
  element = addText();
  get text() { return this.element.textContent!; }
  set text(text: string) { this.element.textContent = text; }
  hide() { this.element.hidden = true; }
  show() { this.element.hidden = false; }
}
class Button extends Label {
  pressed = new Signal();
  override element = addButton("", () => this.pressed.emit());
}
class VBoxContainer { add_child() {} }

const Parlor = runScript(await readSource("godot/addons/parlor/parlor.gd"), { JavaScriptBridge });
const duel = runScript(await readSource("godot/duel.gd"), {
  Parlor, Label, Button, VBoxContainer, add_child() {}, randi_range: () => roll,
});
duel._ready();
window.addEventListener("pagehide", () => Parlor._exit_tree());
