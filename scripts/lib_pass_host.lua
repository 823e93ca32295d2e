-- lib_pass_host: who is the host when the host goes.
-- INCLUDES  event
-- pass_host makes the earliest active player but the leaver the host. It returns the host and the
-- number of the last event. The last host of an empty room stays its host, with the profile.
local function pass_host(publish, room_key, events_key, seq, nonce, now, version, seats, leaver, profile)
  for _, seat in ipairs(seats) do
    if seat.state == 'active' and seat.user ~= leaver then
      seq = string.format('%d', seq + 1)
      emit_event(publish, events_key, seq, nonce, now, 'room.host_changed', version .. '|' .. seat.user)
      return seat.user, seq
    end
  end
  redis.call('HSET', room_key, 'host_profile', profile)
  return leaver, seq
end
