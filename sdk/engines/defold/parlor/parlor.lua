-- The SDK of Parlor for HTML5 bundles. The page loads v1.js and bridge.v1.js before the engine.
-- Amounts are texts, in minor units.
local M = {
	state = "idle", -- "connecting", "online", "reconnecting", "offline" or "closed"
	on_event = nil, -- function(event, data): an event of the player, such as "user", "balance", "error"
	on_room_event = nil, -- function(room_id, event, data): all but "message" have data.room
}

local calls = {} -- the functions that wait for a reply, by id
local last_call = 0

-- Calls a function of the page with texts, and returns its text. A list in JSON is one in
-- JavaScript too.
local function run(name, ...)
	return html5.run("ParlorBridge." .. name .. "(..." .. json.encode({...}) .. ")")
end

-- Opens the client. Options are those of Parlor.init: { gameId = 1 }, and baseUrl where the page
-- bundles the SDK.
function M.open(options)
	assert(html5, "Parlor needs an HTML5 bundle")
	assert(html5.run("typeof ParlorBridge") == "object", "the page has no v1.js and bridge.v1.js")
	run("open", json.encode(options))
end

-- Calls a method such as "rooms.join" with a list of arguments. The methods of a room begin with
-- "room." and its id is their first argument. The function gets the value, or nil and the error,
-- which has code and detail.
function M.call(method, args, on_reply)
	last_call = last_call + 1
	local id = tostring(last_call)
	calls[id] = on_reply or function() end
	run("ask", id, method, #args > 0 and json.encode(args) or "[]")
end

-- Returns an amount as players read it, "2.50 Gold", or "" before the token was seen.
function M.format(amount, token_id)
	return run("format", amount, token_id)
end

-- Returns the service's clock, in ms since 1970.
function M.time()
	return tonumber(html5.run("ParlorBridge.time()"))
end

local function deliver(target, event, data)
	local on_reply = calls[target]
	if on_reply then
		calls[target] = nil
		if event == "ok" then on_reply(data) else on_reply(nil, data) end
	elseif target ~= "" then
		if M.on_room_event then M.on_room_event(target, event, data) end
	else
		if event == "state" then M.state = data end
		if M.on_event then M.on_event(event, data) end
	end
end

-- Delivers what has come since the last frame. Call it in update of one script.
function M.update()
	local messages = html5.run("ParlorBridge.take()")
	if messages == "" then return end
	for _, message in ipairs(json.decode(messages)) do
		deliver(message[1], message[2], message[3])
	end
end

-- Ends the connection. Unfinished calls get the error closed. Call it in final.
function M.close()
	html5.run("ParlorBridge.close()")
	M.state = "closed"
	local open_calls = calls
	calls = {}
	for _, on_reply in pairs(open_calls) do
		on_reply(nil, { code = "closed", detail = "the client was closed" })
	end
end

return M
