/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/stream.h"
#include "play.h"

/* Text with its NULs, and what it gives. */
struct row {
	const char *text;
	size_t length;
	const char *expected;
};
#define ROW(text, expected)                                                                        \
	{                                                                                          \
		text, sizeof(text) - 1, expected                                                   \
	}
#define HOST "Host: a.example\r\n"
#define GET  "GET / HTTP/1.1\r\n" HOST "\r\n"
#define GOT  " http a.example origin /\n"

static void expect_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		play_expect((const uint8_t *)rows[i].text, rows[i].length, rows[i].expected);
}
#define EXPECT(rows) expect_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void test_good_heads(void **state)
{
	static const struct row rows[] = {
		ROW("", "state start\n"),
		ROW(GET, "35" GOT "state between\n"),
		ROW("GET /a?b=c&d HTTP/1.1\r\nAccept: */*\r\nhOST:\t A.Example. \t\r\n\r\n",
		    "59 http a.example origin /a?b=c&d\nstate between\n"),
		ROW("get / HTTP/1.1\r\n" HOST "\r\n", "35" GOT "state between\n"),
		ROW("M-SEARCH / HTTP/1.1\r\n" HOST "\r\n", "40" GOT "state between\n"),
		ROW("GET / HTTP/1.0\r\n\r\n", "18 http - origin /\nstate between\n"),
		ROW("GET / HTTP/1.0\r\n" HOST "\r\n", "35" GOT "state between\n"),
		ROW("GET / HTTP/1.1\r\nHost: a.example:8080\r\n\r\n",
		    "40 http a.example:8080 origin /\nstate between\n"),
		ROW("GET / HTTP/1.1\r\nHost: 10.1.2.3\r\n\r\n",
		    "34 http 10.1.2.3 origin /\nstate between\n"),
		ROW("GET / HTTP/1.1\r\nHost: 127.1:8080\r\n\r\n",
		    "36 http 127.0.0.1:8080 origin /\nstate between\n"),
		ROW("GET / HTTP/1.1\r\nHost: [::1]:3000\r\n\r\n",
		    "36 http ::1:3000 origin /\nstate between\n"),
		ROW("OPTIONS * HTTP/1.1\r\n" HOST "\r\n",
		    "39 http a.example asterisk *\nstate between\n"),
		ROW("GET HTTP://B.example:81/x?y HTTP/1.1\r\n" HOST "\r\n",
		    "57 http a.example absolute http b.example:81 HTTP://B.example:81/x?y\n"
		    "state between\n"),
		ROW("GET ftp://b.example HTTP/1.1\r\n" HOST "\r\n",
		    "49 http a.example absolute ftp b.example ftp://b.example\nstate between\n"),
		ROW("GET http://1.2.3.4?@c.example/ HTTP/1.1\r\n" HOST "\r\n",
		    "60 http a.example absolute http 1.2.3.4 http://1.2.3.4?@c.example/\n"
		    "state between\n"),
		ROW("GET / HTTP/1.1\r\nX: \xff\x80 b\r\nEmpty:\r\n" HOST "\r\n",
		    "52" GOT "state between\n"),
		ROW("GET //x\xc3\xbc HTTP/1.1\r\n" HOST "\r\n",
		    "39 http a.example origin //x\xc3\xbc\nstate between\n"),
	};
	(void)state;

	EXPECT(rows);
}

static void test_waiting(void **state)
{
	static const struct row rows[] = {
		ROW("G", "state start\n"),
		ROW("POST", "state start\n"),
		ROW("GET / HTTP/1.1", "state start\n"),
		ROW("GET / HTTP/1.1\r", "state start\n"),
		ROW("GET / HTTP/1.1\r\n", "state head\n"),
		ROW("GET / HTTP/1.1\r\nHost: www.exa", "state head\n"),
		ROW("GET / HTTP/1.1\r\n" HOST "\r", "state head\n"),
		ROW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r", "state head\n"),
		ROW(GET "G", "35" GOT "state head\n"),
	};
	(void)state;

	EXPECT(rows);
}

#define BAD(text, offset, problem) ROW(text, offset " http malformed " problem "\nstate broken\n")

static void test_bad_request_lines(void **state)
{
	static const struct row rows[] = {
		BAD("\r\nGET / HTTP/1.1\r\n", "1", "empty line before the request line"),
		BAD("\nGET", "1", "empty line before the request line"),
		BAD(" GET / HTTP/1.1\r\n", "1", "white space before the method"),
		BAD("\tGET", "1", "white space before the method"),
		BAD("GET\t/ HTTP/1.1\r\n", "4",
		    "white space in the request line is no single space"),
		BAD("FOO\v/ HTTP/1.1\r\n", "4",
		    "white space in the request line is no single space"),
		BAD("GET\r\n", "4", "request line of one word"),
		BAD("GET /\r\n", "7", "request line without a version (HTTP/0.9)"),
		BAD("GET /\n", "6", "bare LF in the head"),
		BAD("GET  / HTTP/1.1\r\n", "17",
		    "request line of more than three words or with two spaces"),
		BAD("GET /  HTTP/1.1\r\n", "17",
		    "request line of more than three words or with two spaces"),
		BAD("GET / x HTTP/1.1\r\n", "18",
		    "request line of more than three words or with two spaces"),
		BAD("GET  HTTP/1.1\r\n", "15",
		    "request line of more than three words or with two spaces"),
		BAD("GET / HTTP/1.1 \r\n", "17",
		    "request line of more than three words or with two spaces"),
		BAD("GET /\tHTTP/1.1\r\n", "6", "control byte in the head"),
		BAD("GET / HTTP/2.0\r\n", "16", "unknown HTTP version"),
		BAD("FOO / HTTP/3.0\r\n", "16", "unknown HTTP version"),
		BAD("GET / HTTP/11\r\n", "15", "unknown HTTP version"),
		BAD("GET / HTTP/1.2\r\n", "16", "unknown HTTP version"),
		BAD("GET / HTTP/1.10\r\n", "17", "unknown HTTP version"),
		BAD("GET / http/1.1\r\n", "16", "unknown HTTP version"),
		BAD("GET / HTTP/1.1\n", "15", "bare LF in the head"),
		BAD("FOO / HTTP/1.1\n", "15", "bare LF in the head"),
		BAD("GET / HTTP/1.1\rX", "16", "bare CR in the request line"),
		BAD("GET /a\0b HTTP/1.1\r\n", "7", "control byte in the head"),
		BAD("GET /a\x7f", "7", "control byte in the head"),
		BAD("GET /a\x1b", "7", "control byte in the head"),
		BAD("GET /#x HTTP/1.1\r\n", "18", "fragment in the request target"),
		BAD("GET * HTTP/1.1\r\n", "16", "request target \"*\" without OPTIONS"),
		BAD("GET a.example:80 HTTP/1.1\r\n", "27", "request target has no known form"),
		BAD("GET a HTTP/1.1\r\n", "16", "request target has no known form"),
		BAD("GET ://a HTTP/1.1\r\n", "19", "request target has no known form"),
		BAD("GET 1http://a HTTP/1.1\r\n", "24", "request target has no known form"),
		BAD("GET mailto:a@b HTTP/1.1\r\n", "25", "request target has no known form"),
		BAD("GET http:/a HTTP/1.1\r\n", "22", "request target has no known form"),
		BAD("GET http:///a HTTP/1.1\r\n", "24", "empty host"),
		BAD("GET http://a@b.example/ HTTP/1.1\r\n", "34",
		    "user information in the request target"),
		BAD("GET http://a\\@b.example/ HTTP/1.1\r\n", "35",
		    "user information in the request target"),
		BAD("GET http://a\\b.example/ HTTP/1.1\r\n", "34", "bytes outside a host name"),
		BAD("GET http://a%2eb/ HTTP/1.1\r\n", "28", "bytes outside a host name"),
		BAD("GET http://a:b/ HTTP/1.1\r\n", "26", "port is no number"),
		BAD("GET abcdefghijklmnopqrstuvwxyz012345://a HTTP/1.1\r\n", "51",
		    "URL scheme too long"),
		BAD("CONNECT / HTTP/1.1\r\n", "20", "bytes outside a host name"),
		BAD("CONNECT * HTTP/1.1\r\n", "20", "bytes outside a host name"),
		BAD("CONNECT a.example HTTP/1.1\r\n", "28", "CONNECT without a port"),
		BAD("CONNECT http://a.example:80/ HTTP/1.1\r\n", "39", "port is no number"),
		BAD("connect a.example:80 HTTP/1.1\r\n", "31", "request target has no known form"),
	};
	(void)state;

	EXPECT(rows);
}

static void test_foreign(void **state)
{
	static const struct row rows[] = {
		ROW("PING\r\n", "5 other -\nstate opaque\n"),
		ROW("PING\n", "5 other -\nstate opaque\n"),
		ROW("*1\r\n$4\r\nPING\r\n", "3 other -\nstate opaque\n"),
		ROW("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "32 other -\nstate opaque\n"),
		ROW("SSH-2.0-dropbear_2022.83\r\n", "25 other -\nstate opaque\n"),
		ROW("EHLO mail.example\r\n", "19 other -\nstate opaque\n"),
		ROW("OPTIONS * RTSP/1.0\r\n", "20 other -\nstate opaque\n"),
		ROW("SOURCE /live ICE/1.0\r\n", "22 other -\nstate opaque\n"),
		ROW("<?xml version='1.0'?>", "1 other -\nstate opaque\n"),
		ROW("\x05\x02", "1 other -\nstate opaque\n"),
		ROW("\0\0\0\x08\x04\xd2\x16\x2f", "1 other -\nstate opaque\n"),
		ROW("\xff\xfd\x03", "1 other -\nstate opaque\n"),
		ROW("\x80\x2e\x01\x03\x01", "1 other -\nstate opaque\n"),
		ROW("A_METHOD_OF_MORE_THAN_THIRTY_TWO_BYTES / HTTP/1.1\r\n",
		    "33 other -\nstate opaque\n"),
		ROW("FOO bar\0", "8 other -\nstate opaque\n"),
		ROW("FOO(bar", "4 other -\nstate opaque\n"),
		ROW(GET "\x16\x03\x01", "35" GOT "36 other -\nstate opaque\n"),
	};
	(void)state;

	EXPECT(rows);
}

#define BADH(lines, offset, problem) BAD("GET / HTTP/1.1\r\n" lines, offset, problem)

static void test_bad_fields(void **state)
{
	static const struct row rows[] = {
		BADH("\r\n", "18", "HTTP/1.1 without Host"),
		BADH("Accept: */*\r\n\r\n", "31", "HTTP/1.1 without Host"),
		BADH(HOST HOST, "50", "several Host fields"),
		BADH(HOST "X: y\r\nhOst:a.example\r\n", "55", "several Host fields"),
		BADH("Host:\r\n", "23", "empty host"),
		BADH("Host: \t \r\n", "26", "empty host"),
		BADH("Host:\r\n a.example\r\n", "23", "empty host"),
		BADH(HOST "X: y\r\n z\r\n", "40", "folded header line"),
		BADH("\tX: y\r\n", "17", "folded header line"),
		BADH(" Host: a.example\r\n", "17", "folded header line"),
		BADH("Host: a.example\n", "32", "bare LF in the head"),
		BADH(HOST "\n", "34", "bare LF in the head"),
		BADH(HOST "X: a\rY: b\r\n", "39", "bare CR in the head"),
		BADH(HOST "\rX", "35", "bare CR in the head"),
		BADH(HOST "\r\r\n", "35", "bare CR in the head"),
		BADH(HOST "X: a\0b\r\n", "38", "control byte in the head"),
		BADH(HOST "X: a\x7f\r\n", "38", "control byte in the head"),
		BADH(HOST "X: a\x01\r\n", "38", "control byte in the head"),
		BADH("Host: a.example\x1b\r\n", "32", "control byte in the head"),
		BADH("Host : a.example\r\n", "34", "bad header name"),
		BADH(HOST "X\t: a\r\n", "40", "bad header name"),
		BADH(HOST ": b\r\n", "34", "bad header name"),
		BADH(HOST "no colon\r\n", "43", "bad header name"),
		BADH(HOST "nocolon\r\n", "42", "bad header name"),
		BADH(HOST "X(Y: a\r\n", "41", "bad header name"),
		BADH(HOST "X\xc3\xbc: a\r\n", "41", "bad header name"),
		BADH(HOST "\0: a\r\n", "34", "bad header name"),
		BADH("Host: a.example:http\r\n", "38", "port is no number"),
		BADH("Host: a.example:\r\n", "34", "port is no number"),
		BADH("Host: a.example:0\r\n", "35", "port is no number"),
		BADH("Host: a.example:080\r\n", "37", "port is no number"),
		BADH("Host: a.example:65536\r\n", "39", "port is no number"),
		BADH("Host: a.example:100000\r\n", "40", "port is no number"),
		BADH("Host: a.example:80:80\r\n", "39", "port is no number"),
		BADH("Host: a.example:+80\r\n", "37", "port is no number"),
		BADH("Host: u@a.example\r\n", "35", "bytes outside a host name"),
		BADH("Host: a.example b.example\r\n", "43", "bytes outside a host name"),
		BADH("Host: a.example,b.example\r\n", "43", "bytes outside a host name"),
		BADH("Host: a.example\tb\r\n", "35", "bytes outside a host name"),
		BADH("Host: [a.example]\r\n", "35", "bytes outside a host name"),
		BADH("Host: [::1\r\n", "28", "bytes outside a host name"),
		BADH("Host: [::1]x\r\n", "30", "bytes outside a host name"),
		BADH("Host: [fe80::1%eth0]\r\n", "38", "bytes outside a host name"),
		BADH("Host: ::1\r\n", "27", "bytes outside a host name"),
		BADH("Host: a%2eexample\r\n", "35", "bytes outside a host name"),
		BADH("Host: \"a.example\"\r\n", "35", "bytes outside a host name"),
		BADH("Host: a.example#x\r\n", "35", "bytes outside a host name"),
		BADH("Host: a.example/x\r\n", "35", "bytes outside a host name"),
		BADH("Host: http://a.example\r\n", "40", "port is no number"),
		BADH("Host: \xc3\xbc.example\r\n", "34", "bytes outside a host name"),
		BADH("Host: *.example\r\n", "33", "bytes outside a host name"),
		BADH("Host: a..example\r\n", "34", "neither a host name nor an address"),
		BADH("Host: .\r\n", "25", "neither a host name nor an address"),
		BADH("Host: 127.0.0.08\r\n", "34", "neither a host name nor an address"),
		BADH("Host: []\r\n", "26", "neither a host name nor an address"),
	};
	(void)state;

	EXPECT(rows);
}

static void test_bad_framing(void **state)
{
	static const struct row rows[] = {
		BADH(HOST "Content-Length: +4\r\n", "53", "Content-Length is no number"),
		BADH(HOST "Content-Length: -1\r\n", "53", "Content-Length is no number"),
		BADH(HOST "Content-Length: 0x4\r\n", "54", "Content-Length is no number"),
		BADH(HOST "Content-Length: 4, 4\r\n", "55", "Content-Length is no number"),
		BADH(HOST "Content-Length:\r\n", "50", "Content-Length is no number"),
		BADH(HOST "Content-Length: 1 2\r\n", "54", "Content-Length is no number"),
		BADH(HOST "Content-Length: 1234567890123456789\r\n", "70",
		     "Content-Length is no number"),
		BADH(HOST "Content-Length: 4\r\nContent-length: 5\r\n", "71",
		     "several Content-Length fields that differ"),
		BADH(HOST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", "82",
		     "Transfer-Encoding with Content-Length"),
		BADH(HOST "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", "82",
		     "Transfer-Encoding with Content-Length"),
		BADH(HOST "Transfer-Encoding: gzip\r\n", "58",
		     "transfer coding other than chunked"),
		BADH(HOST "Transfer-Encoding: gzip, chunked\r\n", "67",
		     "transfer coding other than chunked"),
		BADH(HOST "Transfer-Encoding: chunked, identity\r\n", "71",
		     "transfer coding other than chunked"),
		BADH(HOST "Transfer-Encoding: xchunked\r\n", "62",
		     "transfer coding other than chunked"),
		BADH(HOST "Transfer-Encoding: \"chunked\"\r\n", "63",
		     "transfer coding other than chunked"),
		BADH(HOST "Transfer-Encoding:\r\n", "53", "transfer coding other than chunked"),
		BADH(HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "89",
		     "transfer coding other than chunked"),
		BAD("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", "64",
		    "Transfer-Encoding in HTTP/1.0"),
		BAD("CONNECT a:1 HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n", "60",
		    "CONNECT with a body"),
		BAD("CONNECT a:1 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", "69",
		    "CONNECT with a body"),
	};
	(void)state;

	EXPECT(rows);
}

#define CHUNKED      "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n" /* 64 */
#define POST(length) "POST / HTTP/1.1\r\n" HOST "Content-Length: " length "\r\n\r\n" /* 55 */

static void test_bodies(void **state)
{
	static const struct row rows[] = {
		ROW(POST("3") "abc" GET, "55" GOT "93" GOT "state between\n"),
		ROW(POST("3") "ab", "55" GOT "state body\n"),
		ROW(POST("0") GET, "55" GOT "90" GOT "state between\n"),
		ROW("POST / HTTP/1.1\r\n" HOST
		    "Content-Length: 3\r\nContent-Length: 03\r\n\r\nabc" GET,
		    "75" GOT "113" GOT "state between\n"),
		ROW(GET GET "GET /2 HTTP/1.1\r\nHost: b\r\n\r\n",
		    "35" GOT "70" GOT "98 http b origin /2\nstate between\n"),
		ROW(CHUNKED "0\r\n\r\n" GET, "64" GOT "104" GOT "state between\n"),
		ROW(CHUNKED
		    "A;x=\"y\"\r\n0123456789\r\n00a\r\n0123456789\r\n0\r\nT: v\r\nU:\r\n\r\n" GET,
		    "64" GOT "152" GOT "state between\n"),
		ROW(CHUNKED "5\r\n0\r\n\r\n\r\n", "64" GOT "state body\n"),
		ROW(POST("3") "abc\r\n" GET,
		    "55" GOT
		    "59 http malformed empty line before the request line\nstate broken\n"),
	};
	(void)state;

	EXPECT(rows);
}

#define BADC(body, offset, problem)                                                                \
	ROW(CHUNKED body, "64" GOT offset " http malformed " problem "\nstate broken\n")

static void test_bad_chunks(void **state)
{
	static const struct row rows[] = {
		BADC("\r\n", "65", "chunk size is no number"),
		BADC("x\r\n", "65", "chunk size is no number"),
		BADC("0x5\r\n", "66", "chunk size is no number"),
		BADC("-5\r\n", "65", "chunk size is no number"),
		BADC(" 5\r\n", "65", "chunk size is no number"),
		BADC("5 \r\n", "66", "chunk size is no number"),
		BADC("5\n", "66", "chunk size is no number"),
		BADC("5\rx", "67", "bare CR in a chunk size line"),
		BADC("5;a\nb\r\n", "68", "control byte in a chunk extension"),
		BADC("5;a\rb\r\n", "69", "bare CR in a chunk size line"),
		BADC("0000000000000001\r\n", "80", "chunk size too long"),
		BADC("fffffffffffffffff\r\n", "80", "chunk size too long"),
		BADC("1\r\nab", "69", "chunk longer than its size"),
		BADC("1\r\na\n", "69", "chunk longer than its size"),
		BADC("1\r\na\rb", "70", "bare CR in a chunked body"),
		BADC("0\r\n : a\r\n", "68", "bad trailer name"),
		BADC("0\r\n: a\r\n", "68", "bad trailer name"),
		BADC("0\r\nA : a\r\n", "69", "bad trailer name"),
		BADC("0\r\nA\r\n", "69", "bad trailer name"),
		BADC("0\r\nA: a\n", "72", "control byte in a trailer"),
		BADC("0\r\nA: a\rb", "73", "bare CR in a chunked body"),
		BADC("0\r\nA: a\r\n b\r\n", "74", "bad trailer name"),
		BADC("0\r\n\n", "68", "bad trailer name"),
		BADC("0\r\n\rx", "69", "bare CR in a chunked body"),
		BADC("0\r\nHost: b\r\n", "72", "forbidden trailer"),
		BADC("0\r\nX: y\r\ncontent-LENGTH: 3\r\n", "88", "forbidden trailer"),
		BADC("0\r\nTransfer-Encoding: x\r\n", "85", "forbidden trailer"),
	};
	(void)state;

	EXPECT(rows);
}

#define WEBSOCKET                                                                                  \
	"GET / HTTP/1.1\r\n" HOST                                                                  \
	"Connection: keep-alive, Upgrade\r\nUpgrade: h2c, WebSocket\r\n\r\n" /* 93 */
#define CONNECT   "CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n"            /* 39 */
#define CONNECTED "39 http b:443 authority b:443 b:443\n"

static void test_upgrades(void **state)
{
	static const struct row rows[] = {
		ROW(WEBSOCKET "\x81\x85", "93" GOT "state opaque\n"),
		ROW(WEBSOCKET "A\xfe" GET, "93" GOT "state opaque\n"),
		ROW(WEBSOCKET "A", "93" GOT "state head\n"),
		ROW(WEBSOCKET "\xc2\x80", "93" GOT "state opaque\n"),
		ROW(WEBSOCKET "\x8a\x80", "93" GOT "state opaque\n"),
		/* Some servers skip this, and read a request. */
		ROW(WEBSOCKET " \x85" GET,
		    "93" GOT "94 http malformed white space before the method\nstate broken\n"),
		ROW(WEBSOCKET "\xa0\x85" GET, "93" GOT "94 other -\nstate opaque\n"),
		ROW(WEBSOCKET "\x91\x85", "93" GOT "94 other -\nstate opaque\n"),
		ROW(WEBSOCKET GET, "93" GOT "128" GOT "state between\n"),
		ROW(WEBSOCKET GET "\x81\x85", "93" GOT "128" GOT "129 other -\nstate opaque\n"),
		ROW(WEBSOCKET "\x81\x05", "93" GOT "94 other -\nstate opaque\n"),
		ROW(WEBSOCKET "\r\n" GET,
		    "93" GOT
		    "94 http malformed empty line before the request line\nstate broken\n"),
		ROW(WEBSOCKET "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		    "93" GOT "117 http2 -\nstate opaque\n"),
		/* not asked for in full: HTTP goes on */
		ROW("GET / HTTP/1.1\r\n" HOST "Upgrade: websocket\r\n\r\n\x81\x85",
		    "55" GOT "56 other -\nstate opaque\n"),
		ROW("GET / HTTP/1.1\r\n" HOST
		    "Connection: upgrade\r\nUpgrade: xwebsocket\r\n\r\n\x81\x85",
		    "77" GOT "78 other -\nstate opaque\n"),
		ROW("GET / HTTP/1.0\r\n" HOST
		    "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x85",
		    "76" GOT "77 other -\nstate opaque\n"),
		ROW("GET / HTTP/1.1\r\n" HOST
		    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n" GET,
		    "86" GOT "121" GOT "state between\n"),
		ROW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0", "24 http2 -\nstate opaque\n"),
		ROW("PRI * HTTP/2.0\r\nHost: a\r\n",
		    "17 http2 malformed broken preface of HTTP/2\nstate broken\n"),
		ROW("PRI * HTTP/2.0\r\n\r\nSM\r\n\n",
		    "23 http2 malformed broken preface of HTTP/2\nstate broken\n"),
		BAD("PRI / HTTP/2.0\r\n", "16", "unknown HTTP version"),
	};
	(void)state;

	EXPECT(rows);
}

static void test_connect(void **state)
{
	static const struct row rows[] = {
		ROW(CONNECT, CONNECTED "state between\n"),
		ROW(CONNECT "\x16\x03\x01", CONNECTED "state opaque\n"),
		ROW(CONNECT "SSH-2.0-x y\r\n", CONNECTED "state opaque\n"),
		ROW(CONNECT CONNECT,
		    CONNECTED "78 http b:443 authority b:443 b:443\nstate between\n"),
		ROW(CONNECT "GET http://c/ HTTP/1.1\r\nHost: c\r\n\r\n",
		    CONNECTED "74 http c absolute http c http://c/\nstate between\n"),
		ROW(CONNECT GET CONNECT,
		    CONNECTED "74 http a.example absolute http a.example /\n"
			      "113 http b:443 authority b:443 b:443\nstate between\n"),
		ROW(CONNECT "GET / HTTP/1.1\r\n\r\n",
		    CONNECTED "57 http malformed HTTP/1.1 without Host\nstate broken\n"),
		ROW(CONNECT "\r\n" GET,
		    CONNECTED "40 http malformed empty line before the request line\n"
			      "state broken\n"),
	};
	(void)state;

	EXPECT(rows);
}

/* A head of LENGTH octets in all, the rest of it in one field or in many. */
static uint8_t *long_head(size_t length, size_t field, size_t *size)
{
	uint8_t *bytes = malloc(length + 64);
	size_t at = (size_t)sprintf((char *)bytes, "GET / HTTP/1.1\r\n" HOST);

	while (at < length - 2) {
		size_t left = length - 2 - at, line = left < field + 5 ? left : field;
		memset(bytes + at, 'x', line);
		memcpy(bytes + at + 1, ":", 1);
		memcpy(bytes + at + line - 2, "\r\n", 2);
		at += line;
	}
	memcpy(bytes + at, "\r\n", 2);
	*size = at + 2;
	return bytes;
}

static void test_limits(void **state)
{
	char transcript[PLAY_SIZE];
	const struct play how = {.first_capacity = 512, .seed = 9, .cut_max = 20000};
	const struct {
		size_t length, field;
		const char *expected;
	} rows[] = {
		{65536, 100000, "65536" GOT "state between\n"},
		{65537, 100000, "65537 http malformed head over 64 KiB\nstate broken\n"},
		{65536, 1000, "65536" GOT "state between\n"},
		{65537, 1000, "65537 http malformed head over 64 KiB\nstate broken\n"},
		{33 + 255 * 8 + 2, 8, "2075" GOT "state between\n"},
		{33 + 256 * 8 + 2, 8, "2081 http malformed too many header fields\nstate broken\n"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t size;
		uint8_t *bytes = long_head(rows[i].length, rows[i].field, &size);
		assert_int_equal(size, rows[i].length);
		assert_string_equal(play(&how, bytes, size, transcript), rows[i].expected);
		free(bytes);
	}

	static uint8_t line[262144];
	memset(line, 'a', sizeof(line));
	memcpy(line, "GET /", 5);
	assert_string_equal(play(&how, line, sizeof(line), transcript),
			    "65537 http malformed head over 64 KiB\nstate broken\n");
	memset(line, 'a', sizeof(line));
	memcpy(line, CHUNKED "1;", 66);
	assert_string_equal(play(&how, line, sizeof(line), transcript),
			    "64" GOT
			    "1091 http malformed chunk extension too long\nstate broken\n");
	memcpy(line, CHUNKED "0\r\n", 67);
	line[70] = ':';
	assert_string_equal(play(&how, line, sizeof(line), transcript),
			    "64" GOT "16452 http malformed trailers too long\nstate broken\n");
}

static void test_early(void **state)
{
	static _Alignas(16) uint8_t storage[STREAM_SIZE];
	uint8_t buffer[512], other[1024];
	const char *head = "GET /x HTTP/1.1\r\nA: b\r\n", *host = "Host: c:81\r\n";
	struct stream *stream = stream_init(storage, buffer, sizeof(buffer));
	struct stream_event *event;
	(void)state;

	assert_null(stream_event(stream));
	stream_feed(stream, (const uint8_t *)head, strlen(head));
	assert_null(stream_early(stream));
	stream_feed(stream, (const uint8_t *)host, strlen(host));
	event = stream_early(stream);
	assert_non_null(event);
	assert_null(stream_event(stream));
	assert_int_equal(stream_state(stream), STREAM_HEAD);
	assert_string_equal(event->request.host.name.text, "c");
	assert_int_equal(event->request.host.port, 81);
	stream_rebuffer(stream, other, sizeof(other));
	memset(buffer, 0, sizeof(buffer));
	assert_int_equal(event->request.target_length, 2);
	assert_memory_equal(event->request.target, "/x", 2);
	stream_feed(stream, (const uint8_t *)"\r\n", 2);
	assert_int_equal(stream_state(stream), STREAM_EVENT);
	assert_null(stream_early(stream));
	stream_rebuffer(stream, buffer, sizeof(buffer));
	memset(other, 0, sizeof(other));
	assert_memory_equal(stream_event(stream)->request.target, "/x", 2);
	assert_false(stream_is_idle(stream));
	assert_int_equal(stream_feed(stream, (const uint8_t *)"G", 1), 0);
	stream_resume(stream);
	assert_true(stream_is_idle(stream));
	assert_null(stream_early(stream));
}

/* Bytes near the grammar, changed at random: no cut may change what they give. */
static void test_hostile(void **state)
{
	static const char *const seeds[] = {
		GET GET,
		CHUNKED "5\r\nabcde\r\n0\r\nT: v\r\n\r\n" GET,
		POST("3") "abc" WEBSOCKET "\x81\x85",
		CONNECT GET "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET http://a.example:80/x HTTP/1.1\r\nHost: a.example:80\r\n\r\n",
	};
	static const char bytes[] = "\r\n\t :;,/?#@[]%*aZ09\x80\xff\x7f\x01\x16";
	char whole[PLAY_SIZE], cut[PLAY_SIZE];
	(void)state;

	srandom(11);
	for (int round = 0; round < 6000; round++) {
		const char *seed = seeds[(size_t)round % (sizeof(seeds) / sizeof(seeds[0]))];
		uint8_t text[512];
		size_t length = strlen(seed);
		memcpy(text, seed, length);
		for (long changes = random() % 4; changes >= 0; changes--) {
			size_t at = (size_t)random() % length;
			uint8_t byte = (uint8_t)bytes[(size_t)random() % sizeof(bytes)];
			if (random() % 3 == 0 && length < sizeof(text)) {
				memmove(text + at + 1, text + at, length - at);
				length++;
			} else if (random() % 3 == 0 && length > 1) {
				memmove(text + at, text + at + 1, length - at - 1);
				length--;
				continue;
			}
			text[at] = byte;
		}
		struct play all = {.first_capacity = 65536};
		struct play some = {.first_capacity = 1 + (size_t)random() % 40,
				    .seed = (unsigned)random() | 1,
				    .cut_max = 1 + (size_t)random() % 30,
				    .takes_away = 1,
				    .early = 1};
		assert_string_equal(play(&some, text, length, cut),
				    play(&all, text, length, whole));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_heads),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_bad_request_lines),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_bad_fields),
		cmocka_unit_test(test_bad_framing),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_bad_chunks),
		cmocka_unit_test(test_upgrades),
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
