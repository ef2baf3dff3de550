-- SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
--
-- Wireshark's dissector of Muster's packets: struct muster_packet of uapi/muster_wire.h, as
-- muster_dump writes them (link type USER0). wireshark -X lua_script:muster.lua FILE

local muster = Proto("muster", "Muster collective offload")
local f = muster.fields

local types = {
	[1] = "DATA", [2] = "RTS", [3] = "GRANT", [4] = "CREDIT", [5] = "P2P", [6] = "ABORT",
	[7] = "WHY", [8] = "TREE_UP", [9] = "TREE_DOWN", [10] = "WRITE", [11] = "QP", [12] = "ROOM", [13] = "GONE",
	[14] = "WRITTEN",
}
local collectives = {
	[1] = "barrier", [2] = "broadcast", [3] = "reduce", [4] = "allreduce", [5] = "reduce_scatter",
	[6] = "allgather", [7] = "gather", [8] = "scatter", [9] = "alltoall", [10] = "scan",
	[11] = "custom", [12] = "exscan",
}
local statuses = {
	[1] = "MISMATCH", [2] = "PEER_LOST", [3] = "ABORTED", [4] = "MEMORY", [5] = "DESCRIPTOR",
	[6] = "PROTOCOL", [7] = "FLUSHED", [8] = "STARVED",
}
local VERSION, HEADER, NOBODY = 7, 96, 0xffffffff

f.version = ProtoField.uint8("muster.version", "Version")
f.type = ProtoField.uint8("muster.type", "Type", base.DEC, types)
f.flags = ProtoField.uint16("muster.flags", "Flags", base.HEX)
f.swap_data = ProtoField.bool("muster.flags.swap_data", "SWAP_DATA", 16, nil, 0x0001)
f.swap_addr = ProtoField.bool("muster.flags.swap_addr", "SWAP_ADDR", 16, nil, 0x0002)
f.coll_end = ProtoField.bool("muster.flags.coll_end", "COLL_END", 16, nil, 0x0004)
f.wanted = ProtoField.bool("muster.flags.credit_wanted", "CREDIT_WANTED", 16, nil, 0x0008)
f.referenced = ProtoField.bool("muster.flags.reference", "REFERENCE", 16, nil, 0x0010)
f.taken = ProtoField.bool("muster.flags.taken", "TAKEN", 16, nil, 0x0020)
f.once = ProtoField.bool("muster.flags.once", "ONCE", 16, nil, 0x0040)
f.last = ProtoField.bool("muster.flags.last", "LAST", 16, nil, 0x0080)
f.bare = ProtoField.bool("muster.flags.bare", "BARE", 16, nil, 0x0100)
f.way = ProtoField.bool("muster.flags.way", "WAY", 16, nil, 0x8000)
f.job = ProtoField.uint8("muster.job", "Job")
f.slot = ProtoField.uint8("muster.slot", "Slot (SeqID)")
f.stage = ProtoField.uint16("muster.stage", "Stage")
f.src_node = ProtoField.uint32("muster.src_node", "From node")
f.dst_node = ProtoField.uint32("muster.dst_node", "To node")
f.src_vp = ProtoField.uint16("muster.src_vp", "From virtual port")
f.dst_vp = ProtoField.uint16("muster.dst_vp", "To virtual port")
f.context = ProtoField.uint32("muster.context", "Context")
f.life = ProtoField.uint32("muster.life", "Life")
f.src_member = ProtoField.uint32("muster.src_member", "From member")
f.number = ProtoField.uint32("muster.number", "Number")
f.pulse = ProtoField.uint32("muster.pulse", "Pulse")
f.offset = ProtoField.uint32("muster.offset", "Offset")
f.total = ProtoField.uint32("muster.total", "Bytes of the message")
f.coll = ProtoField.uint8("muster.coll", "Collective", base.DEC, collectives)
f.dtype = ProtoField.uint8("muster.dtype", "Element type")
f.op = ProtoField.uint8("muster.op", "Operation")
f.root = ProtoField.uint32("muster.root", "Root")
f.digest = ProtoField.uint64("muster.digest", "Digest", base.HEX)
f.incarnation = ProtoField.uint32("muster.incarnation", "Incarnation")
f.base = ProtoField.uint32("muster.base", "Base")
f.arg = ProtoField.uint32("muster.arg", "Argument")
f.length = ProtoField.uint16("muster.length", "Payload bytes")
f.tree = ProtoField.uint16("muster.tree", "Tree")
f.group = ProtoField.uint32("muster.group", "Group")
f.status = ProtoField.uint32("muster.status", "Status", base.DEC, statuses)
f.culprit = ProtoField.uint32("muster.culprit", "Culprit, a member")
f.credits = ProtoField.uint32("muster.credits", "Credits")
f.ref_addr = ProtoField.uint64("muster.reference.addr", "Address", base.HEX)
f.ref_length = ProtoField.uint64("muster.reference.length", "Length")
f.ref_key = ProtoField.uint32("muster.reference.key", "Key")
f.payload = ProtoField.bytes("muster.payload", "Payload")

local malformed = ProtoExpert.new("muster.malformed", "This is no packet of version 7",
	expert.group.MALFORMED, expert.severity.ERROR)
muster.experts = { malformed }

-- Offset, bytes and field, in the order of the structure.
local layout = {
	{ 0, 1, f.version }, { 1, 1, f.type }, { 4, 1, f.job }, { 5, 1, f.slot }, { 6, 2, f.stage },
	{ 8, 4, f.src_node }, { 12, 4, f.dst_node }, { 16, 2, f.src_vp }, { 18, 2, f.dst_vp },
	{ 20, 4, f.context }, { 24, 4, f.life }, { 28, 4, f.src_member }, { 32, 4, f.number },
	{ 36, 4, f.pulse }, { 40, 4, f.offset }, { 44, 4, f.total }, { 48, 1, f.coll },
	{ 49, 1, f.dtype }, { 50, 1, f.op }, { 52, 4, f.root }, { 56, 8, f.digest },
	{ 64, 4, f.incarnation }, { 68, 4, f.base }, { 72, 4, f.arg }, { 76, 2, f.length },
	{ 78, 2, f.tree }, { 80, 4, f.group },
}
local flags = { f.swap_data, f.swap_addr, f.coll_end, f.wanted, f.referenced, f.taken,
	f.once, f.last, f.bare, f.way }

local function add_flags(buffer, tree)
	local branch = tree:add_le(f.flags, buffer(2, 2))
	for _, flag in ipairs(flags) do
		branch:add_le(flag, buffer(2, 2))
	end
end

local function add_failure(buffer, tree)
	tree:add_le(f.status, buffer(32, 4))
	if buffer(72, 4):le_uint() ~= NOBODY then
		tree:add_le(f.culprit, buffer(72, 4))
	end
end

local function add_payload(buffer, tree, kind)
	local rest = buffer(HEADER)
	if kind == "RTS" and bit32.band(buffer(2, 2):le_uint(), 0x10) ~= 0 and rest:len() >= 24 then
		tree:add_le(f.ref_addr, rest(0, 8))
		tree:add_le(f.ref_length, rest(8, 8))
		tree:add_le(f.ref_key, rest(16, 4))
	else
		tree:add(f.payload, rest)
	end
end

local function describe(buffer, kind)
	local name = collectives[buffer(48, 1):uint()]
	return string.format("%s %s number %u pulse %u slot %u of context %u, %u bytes", kind,
		name or "-", buffer(32, 4):le_uint(), buffer(36, 4):le_uint(), buffer(5, 1):uint(),
		buffer(20, 4):le_uint(), buffer(76, 2):le_uint())
end

function muster.dissector(buffer, pinfo, root)
	local tree = root:add(muster, buffer())
	pinfo.cols.protocol = "MUSTER"
	if buffer:len() < HEADER or buffer(0, 1):uint() ~= VERSION or
	    buffer(76, 2):le_uint() ~= buffer:len() - HEADER then
		tree:add_proto_expert_info(malformed)
		return
	end
	local kind = types[buffer(1, 1):uint()] or "?"
	for _, place in ipairs(layout) do
		tree:add_le(place[3], buffer(place[1], place[2]))
	end
	add_flags(buffer, tree)
	if kind == "ABORT" then
		add_failure(buffer, tree)
	elseif kind == "TREE_DOWN" then
		tree:add_le(f.credits, buffer(72, 4))
	end
	if buffer:len() > HEADER then
		add_payload(buffer, tree, kind)
	end
	pinfo.cols.src = string.format("%u.%u", buffer(8, 4):le_uint(), buffer(16, 2):le_uint())
	pinfo.cols.dst = string.format("%u.%u", buffer(12, 4):le_uint(), buffer(18, 2):le_uint())
	pinfo.cols.info = describe(buffer, kind)
	tree:append_text(": " .. describe(buffer, kind))
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, muster)
