// Plays the module and the example of Defold in a Lua of the browser, with the functions of the
// engine that they use.
import { addButton, addText, readSource, roll } from "./screen.js";

declare const fengari: { load(source: string, name?: string): (...args: unknown[]) => any };

const nodes: HTMLElement[] = [];
let picked = -1;
let press = () => {};
Object.assign(window, {
  // As emscripten_run_script_string does.
  runScript: (code: string) => `${(0, eval)(code)}`,
  addNode(text: string) {
    const n = nodes.length;
    const isButton = ["Play for 2.50", "Roll"].includes(text);
    nodes.push(isButton ? addButton(text, () => { picked = n; press(); }) : addText(text));
    return n;
  },
  setText: (n: number, text: string) => { nodes[n]!.textContent = text; },
  setEnabled: (n: number, enabled: boolean) => { nodes[n]!.hidden = !enabled; },
  isEnabled: (n: number) => !nodes[n]!.hidden,
  isPicked: (n: number) => n === picked,
});

/** JSON as lua-cjson has it: null is nil, a table without elements an object. */
const engine = `
local page = require("js").global
html5 = { run = function(code) return page:runScript(code) end }
local quote = function(s)
  return '"' .. s:gsub('[%c"\\\\]', function(c) return string.format("\\\\u%04x", c:byte()) end) .. '"'
end
json = {}
function json.encode(v)
  if type(v) == "string" then return quote(v) end
  if type(v) ~= "table" then return tostring(v) end
  local items = {}
  if #v > 0 then
    for _, item in ipairs(v) do items[#items + 1] = json.encode(item) end
    return "[" .. table.concat(items, ",") .. "]"
  end
  for k, item in pairs(v) do items[#items + 1] = quote(k) .. ":" .. json.encode(item) end
  return "{" .. table.concat(items, ",") .. "}"
end
local escapes = { n = "\\n", t = "\\t", r = "\\r", b = "\\b", f = "\\f" }
function json.decode(s)
  local at = 1
  local value
  local function skip() at = s:find("[^%s,:]", at) end
  local function text()
    local out = {}
    at = at + 1
    while s:sub(at, at) ~= '"' do
      local c = s:sub(at, at)
      if c == "\\\\" then
        local e = s:sub(at + 1, at + 1)
        if e == "u" then
          out[#out + 1] = utf8.char(tonumber(s:sub(at + 2, at + 5), 16))
          at = at + 6
        else
          out[#out + 1] = escapes[e] or e
          at = at + 2
        end
      else
        out[#out + 1] = c
        at = at + 1
      end
    end
    at = at + 1
    return table.concat(out)
  end
  function value()
    skip()
    local c = s:sub(at, at)
    if c == '"' then return text() end
    if c == "{" or c == "[" then
      local out, n, close = {}, 0, c == "{" and "}" or "]"
      at = at + 1
      skip()
      while s:sub(at, at) ~= close do
        if c == "{" then
          local k = text()
          out[k] = value()
        else
          n = n + 1
          out[n] = value()
        end
        skip()
      end
      at = at + 1
      return out
    end
    local word = s:match("^[%w.+-]+", at)
    at = at + #word
    if word == "null" then return nil end
    if word == "true" or word == "false" then return word == "true" end
    return tonumber(word)
  end
  return value()
end
hash = function(text) return text end
vmath = { vector3 = function(x, y, z) return { x = x, y = y, z = z } end }
msg = { post = function() end }
gui = {
  new_text_node = function(_, text) return page:addNode(text) end,
  set_text = function(node, text) page:setText(node, text) end,
  set_enabled = function(node, enabled) page:setEnabled(node, enabled) end,
  is_enabled = function(node) return page:isEnabled(node) end,
  pick_node = function(node) return page:isPicked(node) end,
}
math.random = function() return ${roll} end
`;

fengari.load(engine, "=engine")();
fengari.load(`package.preload["parlor.parlor"] = function() ${await readSource("defold/parlor/parlor.lua")}\nend`)();
fengari.load(await readSource("defold/example/duel.gui_script"), "=duel.gui_script")();
fengari.load("instance = {} init(instance)")();
press = () => { fengari.load('on_input(instance, hash("touch"), { pressed = true, x = 0, y = 0 })')(); };
const frame = fengari.load("update(instance, 1 / 60)");
const loop = () => {
  frame();
  requestAnimationFrame(loop);
};
requestAnimationFrame(loop);
window.addEventListener("pagehide", () => { fengari.load("final(instance)")(); });
