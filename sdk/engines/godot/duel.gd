extends Control
## Two players roll a die for 2.5 GOLD. Both report who has won, so the game needs no server.

var money := Label.new()
var status := Label.new()
var play := Button.new()
var roll := Button.new()
var gold := {}
var room := {}
var me := 0
var mine := 0
var theirs := 0

func _ready() -> void:
	var column := VBoxContainer.new()
	add_child(column)
	play.text = "Play for 2.50"
	roll.text = "Roll"
	for node in [money, status, play, roll]:
		column.add_child(node)
	play.hide()
	roll.hide()
	play.pressed.connect(_on_play)
	roll.pressed.connect(_on_roll)
	Parlor.heard.connect(_on_heard)
	Parlor.room_heard.connect(_on_room_heard)
	status.text = "Connecting"
	Parlor.open({"gameId": 1})

func _on_heard(event: String, data: Variant) -> void:
	if event == "user":
		me = data.user.id
	if event == "balance":
		_show_money(data.amount)
	if event == "error":
		status.text = data.detail
	if event == "state" and data == "online" and gold.is_empty():
		var reply: Dictionary = await Parlor.ask("wallet.balance", ["GOLD"])
		if reply.has("error"):
			status.text = reply.error.detail
			return
		gold = reply.value
		_show_money(gold.amount)
		status.text = "Ready"
		play.show()

func _show_money(amount: String) -> void:
	money.text = "You have " + Parlor.format(amount, "GOLD")

func _on_play() -> void:
	play.hide()
	status.text = "Waiting for an opponent"
	mine = 0
	theirs = 0
	# A stake is a text: 2.5 is exact in it.
	var settings := {"maxPlayers": 2, "entryTokenId": gold.id, "roomEntry": "2.5", "autoStart": true}
	settings.settlement = "consensus"
	var reply: Dictionary = await Parlor.ask("rooms.quick", [settings])
	if reply.has("error"):
		status.text = reply.error.detail
		play.show()
		return
	room = reply.value
	if room.status == "STARTED":
		_on_started()

func _on_started() -> void:
	status.text = "The pot is " + Parlor.format(room.totalWagerAmount, "GOLD")
	roll.show()

func _on_room_heard(room_id: String, event: String, data: Dictionary) -> void:
	if event == "message":
		theirs = data.payload.n
		_report()
		return
	room = data.room
	if event == "started":
		_on_started()
	if event == "finished" or event == "cancelled":
		_on_ended(event, data)
		Parlor.ask("room.release", [room_id])

func _on_ended(event: String, data: Dictionary) -> void:
	status.text = "You lost"
	if event == "cancelled":
		status.text = "Your stake is back"
	else:
		for payout in data.payouts:
			if payout.userId == me and payout.amount != "0":
				status.text = "You won " + Parlor.format(payout.amount, "GOLD")
	roll.hide()
	play.show()

func _on_roll() -> void:
	roll.hide()
	mine = randi_range(1, 6)
	Parlor.ask("room.send", [room.roomId, "roll", {"n": mine}])
	_report()

# Reports who has won, once both have rolled. A higher roll wins; equal ones are a tie.
func _report() -> void:
	if mine == 0 or theirs == 0:
		return
	var results := []
	for user in room.participants:
		var won: bool = mine >= theirs if user.id == me else theirs >= mine
		results.append({"userId": user.id, "place": 1 if won else 2})
	var reply: Dictionary = await Parlor.ask("room.finish", [room.roomId, results])
	if reply.has("error"):
		status.text = reply.error.detail
