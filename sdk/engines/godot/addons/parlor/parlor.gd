extends Node
## The SDK of Parlor for web exports, an autoload. The page loads v1.js and bridge.v1.js before the
## engine.
## Amounts are texts, in minor units. Numbers without a fraction are int.

## An event of the player, such as "state", "user", "balance" or "error".
signal heard(event: String, data: Variant)
## An event of a room. Every one but "message" has the current fields in data.room.
signal room_heard(room_id: String, event: String, data: Dictionary)

## A call that waits for its reply.
class Pending:
	signal done(result: Dictionary)

## "connecting", "online", "reconnecting", "offline" or "closed".
var state := "idle"
var bridge: JavaScriptObject
var receive: JavaScriptObject # kept, because the engine frees a callback that nothing holds
var calls := {}
var last_call := 0

## Opens the client. Options are those of Parlor.init: {"gameId": 1}, and baseUrl where the page
## bundles the SDK.
func open(options: Dictionary) -> void:
	bridge = JavaScriptBridge.get_interface("ParlorBridge")
	if bridge == null:
		push_error("the page has no v1.js and bridge.v1.js: add them to Head Include of the web export")
		return
	receive = JavaScriptBridge.create_callback(_on_message)
	bridge.open(JSON.stringify(options), receive)

## Calls a method such as "rooms.join". The methods of a room begin with "room." and its id is their
## first argument. Returns {"value": …}, or {"error": {"code": …, "detail": …}}.
func ask(method: String, args: Array = []) -> Dictionary:
	last_call += 1
	var id := str(last_call)
	var pending := Pending.new()
	calls[id] = pending
	bridge.ask(id, method, JSON.stringify(args))
	return await pending.done

## Returns an amount as players read it, "2.50 Gold", or "" before the token was seen.
func format(amount: String, token_id: String) -> String:
	return bridge.format(amount, token_id)

## Returns the service's clock, in ms since 1970.
func time() -> float:
	return bridge.time()

## Ends the connection. Unfinished calls return the error closed.
func close() -> void:
	if bridge == null:
		return
	bridge.close()
	bridge = null
	receive = null
	state = "closed"
	var open_calls := calls
	calls = {}
	for id in open_calls:
		open_calls[id].done.emit({"error": {"code": "closed", "detail": "the client was closed"}})

func _exit_tree() -> void:
	close()

# The engine gives the arguments of JavaScript as one array.
func _on_message(args: Array) -> void:
	var target: String = args[0]
	var event: String = args[1]
	var data = _whole(JSON.parse_string(args[2]))
	if calls.has(target):
		var pending = calls[target]
		calls.erase(target)
		if event == "ok":
			pending.done.emit({"value": data})
		else:
			pending.done.emit({"error": data})
	elif target != "":
		room_heard.emit(target, event, data)
	else:
		if event == "state":
			state = data
		heard.emit(event, data)

# JSON has one type of number, which the engine reads as float.
func _whole(value):
	if value is float and value == floor(value):
		return int(value)
	if value is Array:
		return value.map(_whole)
	if value is Dictionary:
		for name in value:
			value[name] = _whole(value[name])
	return value
