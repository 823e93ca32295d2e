// Sends the request of the form. The token is kept in the form only.
const form = document.querySelector<HTMLFormElement>("#try")!;
const field = <T extends HTMLElement>(id: string) => document.querySelector<T>(`#${id}`)!;
const operation = field<HTMLSelectElement>("operation");
const path = field<HTMLInputElement>("path");
const token = field<HTMLInputElement>("token");
const body = field<HTMLTextAreaElement>("body");
const method = field<HTMLOutputElement>("method");
const status = field<HTMLParagraphElement>("status");
const response = field<HTMLPreElement>("response").firstElementChild!;

function showOperation(): void {
  const chosen = operation.selectedOptions[0]!;
  method.value = chosen.dataset.method!;
  method.className = `method ${method.value.toLowerCase()}`;
  path.value = chosen.dataset.path!;
  body.value = chosen.dataset.body ?? "";
  body.disabled = chosen.dataset.body === undefined;
  field("callers").textContent = chosen.dataset.callers ? `of ${chosen.dataset.callers}` : "(none is needed)";
}

function format(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

async function send(): Promise<void> {
  const headers: Record<string, string> = {};
  if (token.value) headers.Authorization = `Bearer ${token.value.trim()}`;
  if (body.value) headers["Content-Type"] = "application/json";
  if (method.value === "POST") headers["Idempotency-Key"] = crypto.randomUUID();
  status.textContent = "Sending …";
  const started = performance.now();
  try {
    const reply = await fetch(path.value, { method: method.value, headers, body: body.value || undefined });
    const text = await reply.text();
    const took = Math.round(performance.now() - started);
    status.textContent = `${reply.status} ${reply.statusText}, ${took} ms, request ${reply.headers.get("X-Request-Id")}`;
    response.textContent = format(text);
  } catch (error) {
    status.textContent = `Not sent: ${error instanceof Error ? error.message : String(error)}`;
    response.textContent = "";
  }
}

const wanted = new URLSearchParams(location.search).get("operation");
if (wanted && [...operation.options].some((option) => option.value === wanted)) operation.value = wanted;
showOperation();
operation.addEventListener("change", showOperation);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  void send();
});
export {};
