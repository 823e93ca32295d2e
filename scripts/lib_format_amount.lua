-- lib_format_amount: prints an amount of the room's token as two members of a JSON object.
-- INCLUDES  format_decimal
local function format_amount(room, name, units)
  return '"' .. name .. '":' .. format_decimal(units, room.decimals) .. ',"amount":"' .. units .. '"'
end
