// An MCP server on stdio that misbehaves on request. It speaks JSON-RPC by hand, because no SDK would do what it does.
// usage: node odd.mjs <folder>. It lists what <folder>/tools.json holds at that moment, and writes each start to <folder>/log.
/* oxlint-disable typescript/no-unsafe-argument, typescript/no-unsafe-assignment, typescript/no-unsafe-call, typescript/no-unsafe-member-access, typescript/no-unsafe-return -- plain JavaScript, so that plain Node runs it */
import { spawn } from 'node:child_process'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const folder = process.argv[2]
const config = () => JSON.parse(readFileSync(join(folder, 'tools.json'), 'utf8'))
const raw = (text) => process.stdout.write(text)
const send = (message) => raw(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const text = (words) => ({ content: [{ type: 'text', text: words }] })
/** About 40 characters a line, and a line in the middle that is like no other. */
const prose = (lines) =>
  Array.from({ length: lines }, (_, i) =>
    i === lines / 2 ? 'The needle is here.' : `Line ${i} is as it was before.`,
  ).join('\n')
const answered = new Map()

appendFileSync(join(folder, 'log'), `start ${process.pid}\n`)
process.stderr.write(`odd: hello, my key is ${process.env.ODD_KEY ?? 'none'}\n`)
if (config().deaf) process.on('SIGTERM', () => {})

const calls = {
  echo: (id, { message }) => send({ id, result: text(`you said ${message}`) }),
  env: (id) => send({ id, result: text(JSON.stringify(process.env)) }),
  die: () => process.exit(3),
  half: () => {
    raw('{"jsonrpc":"2.0","id":')
    process.stdout.end(() => process.exit(4))
  },
  silent: () => {},
  error: (id) => send({ id, result: { ...text('The disk is full.'), isError: true } }),
  refuse: (id) => send({ id, error: { code: -32_000, message: 'Not today.' } }),
  nonsense: (id) => send({ id, result: { content: 'this is no list' } }),
  empty: (id) => send({ id, result: { content: [] } }),
  long: (id) => send({ id, result: text(`first\n${'x'.repeat(200_000)}\nlast`) }),
  /** Three that are over 16 KiB: rows as structured content, prose, and an error that goes on and on. */
  rows: (id) => {
    const rows = Array.from({ length: 2_000 }, (_, i) => ({ id: i, status: i === 999 ? 'failed' : 'ok' }))
    send({ id, result: { ...text(JSON.stringify({ rows })), structuredContent: { rows } } })
  },
  prose: (id) => send({ id, result: text(prose(1_500)) }),
  fails: (id) => send({ id, result: { ...text(prose(1_500)), isError: true } }),
  hidden: (id) => send({ id, result: text('plain\u{E0041}\u{E0042}\u202Etext') }),
  parts: (id) => {
    const blob = Buffer.from('some bytes').toString('base64')
    const content = [
      { type: 'text', text: 'look:' },
      { type: 'image', data: blob, mimeType: 'image/png' },
      { type: 'audio', data: blob, mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: 'a://b', text: 'inside' } },
      { type: 'resource', resource: { uri: 'a://c', blob, mimeType: 'application/zip' } },
      { type: 'resource_link', uri: 'a://d', name: 'elsewhere' },
    ]
    send({ id, result: { content } })
  },
  structured: (id) => send({ id, result: { ...text('{"a":1}'), structuredContent: { b: 2, a: 1 } } }),
  /** Some servers send only structured content: with an empty list of parts, or with none at all. */
  bare: (id) => send({ id, result: { structuredContent: { total: 7 } } }),
  textless: (id) => send({ id, result: { content: [], structuredContent: { total: 7 } } }),
  wrong: (id) =>
    send({ id, result: { ...text('Ask the store.'), isError: true, structuredContent: { code: 'no_stock' } } }),
  huge: (id) => {
    const chunk = 'x'.repeat(1024 * 1024)
    raw(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`)
    for (let i = 0; i < 64; i++) raw(chunk)
    raw('"}]}}\n')
  },
  junk: (id) => {
    raw('Listening on port 80\n\n{"jsonrpc":"2.0"\nnull\n[1,2]\n{"jsonrpc":"1.0","id":1}\n')
    const line = JSON.stringify({ jsonrpc: '2.0', id, result: text('clean') })
    raw(line.slice(0, 20))
    setTimeout(() => raw(`${line.slice(20)}\r\n`), 20)
  },
  double: (id) => {
    send({ id: String(id), result: text('by its text') })
    send({ id: id + 1_000, result: text('for nobody') })
    send({ id: null, result: text('for null') })
    send({ id, result: text('the first') })
    send({ id, result: text('the second') })
  },
  flood: (id) => {
    for (let i = 0; i < 20_000; i++) {
      send({ method: 'notifications/message', params: { level: 'info', data: 'x'.repeat(100) } })
      send({ method: 'notifications/progress', params: { progressToken: i, progress: i } })
      send({ method: 'notifications/tools/list_changed' })
    }
    send({ id, result: text('dry') })
  },
  ask: (id) => {
    const methods = ['sampling/createMessage', 'elicitation/create', 'roots/list', 'ping']
    for (const method of methods) send({ id: method, method, params: {} })
    const wait = setInterval(() => {
      if (answered.size < methods.length) return
      clearInterval(wait)
      send({ id, result: text(JSON.stringify(Object.fromEntries(answered))) })
    }, 5)
  },
  /** Asks and asks, and never reads an answer. */
  nag: () => {
    process.stdin.pause()
    const more = () => {
      for (let i = 0; i < 2_000; i++) send({ id: `nag${i}${'x'.repeat(2_000)}`, method: 'ping' })
      if (process.stdout.writableNeedDrain) process.stdout.once('drain', more)
      else setImmediate(more)
    }
    more()
  },
  /** Starts some that want to outlive it: in its group, in a session of their own, and twice removed. */
  breed: (id) => {
    const idle = 'setInterval(() => {}, 1000)'
    const { mark, strangers = [] } = config()
    const options = { stdio: 'ignore' }
    const node = process.execPath
    const born = [
      spawn(node, ['-e', idle, mark], options),
      spawn(node, ['-e', `process.on('SIGTERM', () => {}); ${idle}`, mark], options),
      spawn(node, ['-e', idle, mark], { ...options, detached: true }),
      spawn('sh', ['-c', `setsid "${node}" -e "${idle}" ${mark} & exit`], { ...options, detached: true }),
    ]
    /** With an environment of their own: a child in a session of its own, and one that nobody is the parent of. */
    const alien = { ...options, detached: true, env: {} }
    if (strangers.includes('child')) born.push(spawn(node, ['-e', idle, mark], alien))
    if (strangers.includes('orphan'))
      born.push(spawn('/bin/sh', ['-c', `"${node}" -e "${idle}" ${mark} & exit`], alien))
    for (const child of born) child.unref()
    send({ id, result: text('born') })
  },
  /** Becomes something else, and says so. */
  change: (id) => {
    writeFileSync(join(folder, 'tools.json'), JSON.stringify({ ...config(), ...config().next }))
    send({ method: 'notifications/tools/list_changed' })
    send({ id, result: text('changed') })
  },
}

const methods = {
  initialize: (id, { protocolVersion }) => {
    const { silent, instructions } = config()
    if (silent) return
    const capabilities = { tools: { listChanged: true } }
    send({ id, result: { protocolVersion, capabilities, serverInfo: { name: 'odd', version: '1' }, instructions } })
  },
  'tools/list': (id, { cursor }) => {
    const { tools, endless, many } = config()
    appendFileSync(join(folder, 'log'), 'list\n')
    if (endless) return send({ id, result: { tools: [tools[0]], nextCursor: `${cursor ?? ''}x` } })
    const more = Array.from({ length: many ?? 0 }, (_, i) => ({ name: `t${i}`, inputSchema: { type: 'object' } }))
    send({ id, result: { tools: [...tools, ...more] } })
  },
  'tools/call': (id, { name, arguments: args }) => {
    appendFileSync(join(folder, 'log'), `call ${name}\n`)
    ;(calls[name] ?? calls.echo)(id, args ?? {})
  },
}

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, method, params, result, error } = JSON.parse(line)
    if (method === undefined) answered.set(id, error ? error.code : result)
    else if (method === 'notifications/cancelled') {
      appendFileSync(join(folder, 'log'), 'cancelled\n')
      send({ id: params.requestId, result: text('too late') })
    } else methods[method]?.(id, params ?? {})
  })
  .on('close', () => {
    if (!config().deaf) process.exit(0)
    setInterval(() => {}, 1_000)
  })
