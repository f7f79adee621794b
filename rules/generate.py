#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Turns the data files of this folder into the C tables that rules/builtin.h declares.

    generate.py FOLDER OUTPUT

Every error names its file and line and stops the build: data that cannot be read must not become an empty floor.
"""
import csv
import ipaddress
import os
import re
import sys

LABEL = re.compile(r"[a-z0-9_-]{1,63}\Z")
# Fewer than these and something was lost on the way.
LEAST = {"floor": 17, "names": 150, "ranges4": 25, "ranges6": 30}


class Mistake(Exception):
    pass


def lines(folder, name):
    """(line number, fields before the first '|') of each rule."""
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            parts = [part.strip() for part in text.split("|")]
            if len(parts) < 2 or not parts[-1]:
                raise Mistake(f"{name}:{number}: a rule needs its source")
            yield number, parts[0].split()


def network(name, number, text):
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise Mistake(f"{name}:{number}: {error}") from error


def domain(name, number, text):
    if len(text) > 253 or not all(LABEL.match(label) for label in text.split(".")):
        raise Mistake(f"{name}:{number}: {text} is no canonical name")
    return text


def suffix_hash(text):
    """names.c, names_hash(): FNV-1a over the octets from the last to the first."""
    value = 0xCBF29CE484222325
    for octet in reversed(text.encode("ascii")):
        value = ((value ^ octet) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return (value ^ value >> 32) & 0xFFFFFFFF


def read_floor(folder):
    name, addresses, names = "floor.txt", [], []
    for number, fields in lines(folder, name):
        kind = fields[0]
        if kind in ("floor", "infrastructure"):
            port = 0
            if len(fields) == 4 and kind == "floor" and fields[2] == "tcp" and fields[3].isdecimal():
                port = int(fields[3])
            if len(fields) != 2 and not 0 < port < 65536:
                raise Mistake(f"{name}:{number}: {' '.join(fields)} is no rule")
            addresses.append((kind, network(name, number, fields[1]), port, number))
        elif kind in ("name", "bare") and len(fields) == 2:
            names.append((domain(name, number, fields[1]), f"NAME_{kind.upper()}", number, None))
        elif kind == "under" and len(fields) == 3:
            names.append((domain(name, number, fields[2]), "NAME_UNDER", number, domain(name, number, fields[1])))
        else:
            raise Mistake(f"{name}:{number}: {kind} is no kind")
    return addresses, names


def read_names(folder, name, kinds):
    result = []
    for number, fields in lines(folder, name):
        if len(fields) != 2 or fields[0] not in kinds:
            raise Mistake(f"{name}:{number}: {' '.join(fields)} is no rule")
        result.append((domain(name, number, fields[1]), f"NAME_{fields[0].upper()}", number, None))
    return result


def read_classes(folder):
    name = "address-classes.txt"
    for number, fields in lines(folder, name):
        if len(fields) != 2 or fields[0] not in ("loopback", "private", "special", "never"):
            raise Mistake(f"{name}:{number}: {' '.join(fields)} is no rule")
        yield network(name, number, fields[1]), fields[0], "SOURCE_CLASSES", number


def read_registry(folder, name, source):
    """Globally reachable is what the registry says is; false, "N/A" and a blank are not."""
    with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        if next(rows)[8] != "Globally Reachable":
            raise Mistake(f"{name}:1: unknown columns")
        for row in rows:
            if len(row) != 10:
                raise Mistake(f"{name}:{rows.line_num}: {len(row)} columns")
            what = "public" if row[8].split(" ")[0] == "True" else "special"
            for block in row[0].split(","):
                yield network(name, rows.line_num, block.split("[")[0].strip()), what, source, rows.line_num


def flatten(rules, bits, default):
    """Disjoint (first, last, class, source, line), in order, by the longest prefix; equals: the first rule given."""
    last = 2**bits - 1
    edges = {0}
    for net, _, _, _ in rules:
        edges.add(int(net.network_address))
        if int(net.broadcast_address) < last:
            edges.add(int(net.broadcast_address) + 1)
    best = {}
    for rank, rule in enumerate(rules):
        best.setdefault(rule[0], (rank, rule))
    ranges = []
    starts = sorted(edges)
    for at, first in enumerate(starts):
        end = starts[at + 1] - 1 if at + 1 < len(starts) else last
        here = [rule for net, (_, rule) in best.items() if int(net.network_address) <= first <= int(net.broadcast_address)]
        what = max(here, key=lambda rule: rule[0].prefixlen)[1:] if here else default
        if ranges and ranges[-1][2:] == what:
            ranges[-1] = (ranges[-1][0], end) + what
        else:
            ranges.append((first, end) + what)
    return ranges


def prefixes(ranges, bits):
    """What is not public as the fewest prefixes."""
    kind = ipaddress.IPv4Address if bits == 32 else ipaddress.IPv6Address
    nets = []
    for first, last, what, _, _ in ranges:
        if what != "public":
            nets += ipaddress.summarize_address_range(kind(first), kind(last))
    return list(ipaddress.collapse_addresses(nets))


def c_address(address):
    family = "ADDRESS_IPV4" if address.version == 4 else "ADDRESS_IPV6"
    return f"{{{family}, {{{', '.join(f'0x{octet:02x}' for octet in address.packed)}}}}}"


def c_prefix(net):
    return f"{{{c_address(net.network_address)}, {net.prefixlen}}}"


def write_floor(out, floor):
    out.append("const struct floor_address builtin_floor[] = {")
    for kind, net, port, line in floor:
        out.append(f"\t{{{c_prefix(net)}, FLOOR_{kind.upper()}, {port}, {line}}},")
    out.append("};")
    out.append(f"const size_t builtin_floor_count = {len(floor)};")
    # The same as numbers, for a comparison in one step.
    rows = {4: [], 6: []}
    for index, (_, net, _, _) in enumerate(floor):
        base, mask = int(net.network_address), int(net.netmask)
        words = [base, mask] if net.version == 4 else [base >> 64, base & 2**64 - 1, mask >> 64, mask & 2**64 - 1]
        form = "0x{:08x}u" if net.version == 4 else "UINT64_C(0x{:016x})"
        rows[net.version].append(f"\t{{{', '.join(form.format(word) for word in words)}, {index}}},")
    for version, lines_ in rows.items():
        out.append(f"const struct builtin_floor{version} builtin_floor{version}[] = {{")
        out += lines_
        out.append("};")
        out.append(f"const size_t builtin_floor{version}_count = {len(lines_)};")
    # Most addresses have a first octet that no rule has.
    octets = 0
    for net in (net for _, net, _, _ in floor if net.version == 4):
        for octet in range(net.network_address.packed[0], net.broadcast_address.packed[0] + 1):
            octets |= 1 << octet
    words = ", ".join(f"UINT64_C(0x{octets >> shift & 2**64 - 1:016x})" for shift in (0, 64, 128, 192))
    out.append(f"const uint64_t builtin_floor4_octets[4] = {{{words}}};")


def write_names(out, names):
    seen = {}
    for text, kind, source, line, label in names:
        if text in seen:
            raise Mistake(f"{text} stands twice: {seen[text]} and {source} line {line}")
        seen[text] = f"{source} line {line}"
    size = 1
    while size < 4 * len(names):
        size *= 2
    slots = [0] * size
    depths = 0
    out.append(f"const struct builtin_name builtin_names[] = {{")
    for at, (text, kind, source, line, label) in enumerate(names):
        quoted = f'"{label}"' if label else "NULL"
        out.append(f'\t{{"{text}", {quoted}, {len(text)}, {kind}, {{{source}, {line}}}}},')
        slot = suffix_hash(text) & (size - 1)
        while slots[slot]:
            slot = (slot + 1) & (size - 1)
        slots[slot] = at + 1
        depths |= 1 << min(text.count(".") + 1, 63)
    out.append("};")
    out.append(f"const uint16_t builtin_name_slots[] = {{{', '.join(map(str, slots))}}};")
    out.append(f"const uint32_t builtin_name_slot_count = {size};")
    out.append(f"const uint64_t builtin_name_depths = UINT64_C(0x{depths:x});")


def write_ranges(out, ranges4, ranges6):
    out.append("const struct builtin_range4 builtin_ranges4[] = {")
    for first, last, what, source, line in ranges4:
        out.append(f"\t{{0x{first:08x}u, CLASS_{what.upper()}, {{{source}, {line}}}}},")
    out.append("};")
    out.append(f"const size_t builtin_range4_count = {len(ranges4)};")
    out.append("const struct builtin_range6 builtin_ranges6[] = {")
    for first, last, what, source, line in ranges6:
        high, low = first >> 64, first & (2**64 - 1)
        out.append(f"\t{{UINT64_C(0x{high:016x}), UINT64_C(0x{low:016x}), CLASS_{what.upper()}, {{{source}, {line}}}}},")
    out.append("};")
    out.append(f"const size_t builtin_range6_count = {len(ranges6)};")
    nets = prefixes(ranges4, 32) + prefixes(ranges6, 128)
    out.append("const struct prefix builtin_nonpublic[] = {")
    out += [f"\t{c_prefix(net)}," for net in nets]
    out.append("};")
    out.append(f"const size_t builtin_nonpublic_count = {len(nets)};")


def main(folder, output):
    floor, floor_names = read_floor(folder)
    names = [(text, kind, "SOURCE_FLOOR", line, label) for text, kind, line, label in floor_names]
    for file, source, kinds in (
        ("special-names.txt", "SOURCE_SPECIAL_NAMES", ("localhost", "private", "reserved", "exempt")),
        ("encrypted-dns.txt", "SOURCE_ENCRYPTED_DNS", ("provider", "canary")),
    ):
        names += [(text, kind, source, line, label) for text, kind, line, label in read_names(folder, file, kinds)]
    rules = list(read_classes(folder))
    rules += read_registry(folder, "iana-ipv4-special.csv", "SOURCE_IANA_IPV4")
    rules += read_registry(folder, "iana-ipv6-special.csv", "SOURCE_IANA_IPV6")
    # RFC 4291 section 2.4 and the IANA IPv6 address space: what is delegated at all is 2000::/3.
    rules.append((ipaddress.ip_network("2000::/3"), "public", "SOURCE_BUILTIN", 0))
    ranges4 = flatten([r for r in rules if r[0].version == 4], 32, ("public", "SOURCE_BUILTIN", 0))
    ranges6 = flatten([r for r in rules if r[0].version == 6], 128, ("special", "SOURCE_BUILTIN", 0))
    for what, count in (("floor", len(floor)), ("names", len(names)), ("ranges4", len(ranges4)), ("ranges6", len(ranges6))):
        if count < LEAST[what]:
            raise Mistake(f"only {count} {what}: data was lost")

    out = ["/* SPDX-License-Identifier: GPL-2.0-or-later */", "/* Made by rules/generate.py from the data files beside it. */"]
    out += ['#include "rules/builtin.h"', ""]
    write_floor(out, floor)
    write_names(out, names)
    write_ranges(out, ranges4, ranges6)
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2])
    except Mistake as mistake:
        sys.exit(f"generate.py: {mistake}")
