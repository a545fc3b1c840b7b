// Row 105: ids that a shell, a terminal or a path would obey. They come in at every door, and those that an older version let in stand in
// commands to paste and in rows of a terminal. The controls are the doors, commands and rows as they would be without a check, a quote and
// a cleaner.
import { spawnSync } from 'node:child_process'
import { exportSession, importSession } from '../../src/archive/portable.ts'
import { pendingHead, decideHint } from '../../src/cli/present/result-output.ts'
import { eventLineWriter } from '../../src/cli/present/event-line.ts'
import { heldLines } from '../../src/cli/present/held-session.ts'
import { lookText, attemptsText } from '../../src/cli/present/look-text.ts'
import { print, shortId, warn } from '../../src/cli/present/print.ts'
import { createPaint } from '../../src/cli/present/terminal-text.ts'
import { Harness, memory, type CompleteStore } from '../../src/index.ts'
import { importHeldText } from '../../src/view/session-program.ts'
import { handleOpen as openByServer } from '../../src/server/answers/session-actions.ts'
import type { ApiRequest } from '../../src/server/server-host.ts'
import type { PendingCall } from '../../src/sessions/look/pending.ts'
import { agUiHandler, chatHandler, type Handler } from '../../src/ui/index.ts'
import { shellCommand, shellWord } from '../../src/view/shell-command.ts'
import { makeOldSession } from '../old-session.ts'
import { forgeFile } from '../../sim/forge-file.ts'
import type { Case, Row } from './case.ts'
import type { World } from './world.ts'

// ---- Doors: no session is made under such an id -----------------------------------------------------------------------

const SPELLINGS: Readonly<Record<string, string>> = {
  'a command': '$(touch marker)',
  'a line break': 'a\n1a2b3c4d  idle',
  'an escape': '\u001b[2Ja',
  'a turned direction': '\u202eabc',
  'an unseen letter': 'a\u200bb',
  'a path': '../../etc',
  'a step of a path': '..',
  'the word for the newest session': 'latest',
  'a letter of another script': 'аdmin',
  'too many letters': 'x'.repeat(129),
}

type Door = (harness: Harness, store: CompleteStore, id: string) => Promise<unknown>

const asked = (body: object): Request => {
  const headers = { 'content-type': 'application/json' }
  return new Request('http://127.0.0.1/', { method: 'POST', headers, body: JSON.stringify(body) })
}

async function throughPage(handler: Handler, body: object): Promise<void> {
  const response = await handler(asked(body))
  await response.text()
}

const DOORS: Readonly<Record<string, Door>> = {
  open: (harness, _store, id) => harness.open({ id }),
  'a handle that is used': async (harness, store, id) => {
    // A handle of a session that is not there writes nothing, so the id itself must be refused.
    const session = harness.session(id)
    await makeOldSession(store, session.id)
  },
  fork: async (harness, _store, id) => (await harness.open()).fork({ id }),
  'an import under another id': async (harness, store, id) => {
    const { id: plain } = await harness.open()
    await importSession(store, await exportSession(store, plain), { id })
  },
  'a file': async (harness, store, id) => {
    const file = await exportSession(store, (await harness.open()).id)
    await importSession(
      store,
      forgeFile(file, (copy) => void (copy.session = id)),
    )
  },
  'a chat page': (harness, _store, id) => {
    const message = { id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hello.' }] }
    return throughPage(chatHandler(harness, { by: () => 'ana' }), { id, messages: [message] })
  },
  'an AG-UI client': (harness, _store, id) => {
    const body = { threadId: id, runId: 'r', messages: [{ id: 'm', role: 'user', content: 'Hello.' }] }
    return throughPage(agUiHandler(harness, { by: () => 'ana' }), body)
  },
  'the server': (harness, store, id) => {
    const host = { harness, store, begin: async () => ({ harness }) }
    const principal = { name: 'ana', role: 'operator', reach: 'own', roles: [] }
    return openByServer({ host, principal, key: null, body: { id } } as unknown as ApiRequest)
  },
}

const stores = new WeakMap<World, CompleteStore>()

function throughDoor(door: string, spelling: string): Case {
  const id = SPELLINGS[spelling] ?? ''
  return {
    name: `${spelling} through ${door}`,
    attack: async (world) => {
      const store = memory()
      stores.set(world, store)
      const harness = new Harness({ model: world.model(() => 'done'), store })
      world.defer(() => harness.close())
      // A refusal is what is hoped for. Whether there is a session tells.
      if (world.defended) await Promise.resolve(DOORS[door]?.(harness, store, id)).catch(() => {})
      else await makeOldSession(store, id)
    },
    harmed: async (world) => (await stores.get(world)?.card(id)) !== null,
  }
}

// ---- Commands to paste: a shell runs nothing of an id -----------------------------------------------------------------

const MARK: Readonly<Record<string, string>> = {
  'a command': '$(touch marker)',
  'a command in old quotes': '`touch marker`',
  'another command': 'a; touch marker #',
  'a quote and a command': "'; touch marker; '",
  'a line': 'a\ntouch marker\n',
  'a redirection': 'a>marker',
}

const pendingOf = (sessionId: string, more: object = {}): PendingCall =>
  ({
    sessionId,
    callId: '3.0',
    tool: 'send',
    args: {},
    needs: 'approval',
    path: [sessionId],
    ...more,
  }) as unknown as PendingCall

/** What stands between these two in a text. */
function between(text: string, before: string, after: string): string {
  const from = text.indexOf(before) + before.length
  const to = after === '' ? text.length : text.indexOf(after, from)
  if (from < before.length || to < 0) throw new Error(`the text has no command: ${JSON.stringify(text)}`)
  return text.slice(from, to)
}

type Paste = { readonly real: (id: string) => string | Promise<string>; readonly naive: (id: string) => string }

const TROUBLE = { attempts: 3, reason: 'x', until: null } as never
const SEAT = { folder: null, room: { columns: 80, rows: 20 }, paint: createPaint(false) }
const PASTES: Readonly<Record<string, Paste>> = {
  'the way to decide': {
    real: (id) => between(decideHint(pendingOf(id)), 'Decide with: ', '   or: '),
    naive: (id) => `terret approve ${id} 3.0`,
  },
  'the role to decide in': {
    real: (id) => between(decideHint(pendingOf('plain', { roles: [id] })), 'Decide with: ', '   or: '),
    naive: (id) => `terret approve plain 3.0 --role ${id}`,
  },
  'the way to answer': {
    real: (id) => between(decideHint(pendingOf(id, { needs: 'answer' })), 'Answer with: ', ''),
    naive: (id) => `terret answer ${id} 3.0 TEXT`,
  },
  'the way to try again': {
    real: (id) => between(attemptsText(id, TROUBLE), 'To try it again: ', ''),
    naive: (id) => `terret resume ${id}`,
  },
  'what is said of a held session': {
    real: async (id) => {
      const held = { session: id, held: true, agent: 'default', calls: [], inputs: [], wakes: [] } as const
      return between((await heldLines(held, SEAT)).at(-1) ?? '', 'Go on with: ', '   or drop')
    },
    naive: (id) => `terret resume ${id}`,
  },
  'an error of a held session': {
    real: (id) => between(importHeldText(id), 'let it go on: `', '`, or send('),
    naive: (id) => `terret resume ${id}`,
  },
  'a button of the page': {
    real: (id) => `${shellCommand`terret history ${id} --server ${'http://127.0.0.1:4747'} --json`} | sed -n '1p'`,
    naive: (id) => `terret history ${id} --server http://127.0.0.1:4747 --json | sed -n '1p'`,
  },
}

function pasted(sink: string, spelling: string): Case {
  const { real, naive } = PASTES[sink] ?? { real: () => '', naive: () => '' }
  const id = MARK[spelling] ?? ''
  return {
    name: `${spelling} in ${sink}`,
    attack: async (world) => {
      // Plain quotes around it do not help against an id that has one.
      const line = await (world.defended ? real(id) : naive(id.startsWith("'") ? `'${id}'` : id))
      // The command itself does nothing: only what a shell makes of the line counts.
      const script = `terret() { :; }; node() { :; }\n${line}`
      spawnSync('bash', ['-c', script], { cwd: world.workspace, timeout: 10_000 })
    },
    harmed: (world) => world.has('ws/marker'),
  }
}

const FLAGGED = ['-rf', '--yes', '--data=elsewhere']

/** An id that begins with a dash. `--yes` of the command itself would remove without a question. */
function flagged(id: string): Case {
  return {
    name: `${id} is no flag of a command to paste`,
    attack: (world) => {
      const line = world.defended ? shellCommand`terret delete ${id}` : `terret delete ${shellWord(id)}`
      const script = `terret() { for word in "$@"; do [ "$word" = -- ] && break; printf '%s\\n' "$word"; done > read; }\n${line}`
      return Promise.resolve(spawnSync('bash', ['-c', script], { cwd: world.workspace, timeout: 10_000 }))
    },
    harmed: (world) => (world.text('ws/read') ?? '').includes(id),
  }
}

// ---- Rows of a terminal -----------------------------------------------------------------------------------------------

const SHOWN: Readonly<Record<string, string>> = {
  'a second row': 'a\n1a2b3c4d  idle             2026-01-01 00:00',
  'a cleared screen': 'a\u001b[2J\u001b[H',
  'a title of the window': 'a\u001b]0;owned\u0007',
  'a row that is written over': 'a\r1a2b3c4d  idle',
  'a turned direction': 'a\u202e\u2066b',
  'an escape of one byte': 'a\u009b2J',
  'an unseen letter': 'a\u200b\u2060b',
}

type Shown = { readonly real: (id: string) => string; readonly naive: (id: string) => string }

/** What reaches the terminal: `print` and `warn` write at once. */
function written(act: () => void): string {
  let text = ''
  const streams = [process.stdout, process.stderr]
  const kept = streams.map((stream) => stream.write.bind(stream))
  for (const stream of streams)
    stream.write = (chunk: string | Uint8Array) => {
      text += String(chunk)
      return true
    }
  try {
    act()
  } finally {
    for (const [at, write] of kept.entries()) Object.assign(streams[at] ?? {}, { write })
  }
  return text.replace(/\n$/, '')
}

const created = (id: string) =>
  ({ seq: 1, at: 0, epoch: 0, type: 'session.created', agent: id, planner: 'model' }) as const
const ROWS_SHOWN: Readonly<Record<string, Shown>> = {
  'an id in a row': {
    real: (id) => written(() => print(`${shortId(id).padEnd(8)}  idle`)),
    naive: (id) => `${id.padEnd(8)}  idle`,
  },
  'a row in which nobody cleaned it': {
    real: (id) => written(() => print(`${id.padEnd(8)}  idle`)),
    naive: (id) => `${id.padEnd(8)}  idle`,
  },
  'a warning': { real: (id) => written(() => warn(`Session ${id}`)), naive: (id) => `Session ${id}` },
  'the agent of an event': {
    real: (id) => eventLineWriter()(created(id)),
    naive: (id) => `    1  00:00:00  session.created  ${id}`,
  },
  'the session that an event names': {
    real: (id) => eventLineWriter()({ ...created('default'), fork: { session: id, seq: 1 } }),
    naive: (id) => `    1  00:00:00  session.created  forked from ${id} at 1`,
  },
  'a question': {
    real: (id) => pendingHead(pendingOf(id, { callId: id, tool: id })),
    naive: (id) => `Session ${id} wants to run ${id} (call ${id}):`,
  },
  'what a look found': {
    real: (id) => lookText(shortId(id), { type: 'rested', waiting: id }),
    naive: (id) => `${id}: rests, waiting for ${id}.`,
  },
  'a command to paste': {
    real: (id) => decideHint(pendingOf(id)),
    naive: (id) => `  Decide with: terret approve '${id}' 3.0`,
  },
}

const OBEYED = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u
const rows = new WeakMap<World, string>()

function shown(sink: string, spelling: string): Case {
  const { real, naive } = ROWS_SHOWN[sink] ?? { real: () => '', naive: () => '' }
  const id = SHOWN[spelling] ?? ''
  return {
    name: `${spelling} in ${sink}`,
    attack: (world) => Promise.resolve(void rows.set(world, world.defended ? real(id) : naive(id))),
    harmed: (world) => OBEYED.test(rows.get(world) ?? '\n'),
  }
}

const each = (
  left: Readonly<Record<string, unknown>>,
  right: Readonly<Record<string, unknown>>,
  make: (left: string, right: string) => Case,
): readonly Case[] => Object.keys(left).flatMap((one) => Object.keys(right).map((other) => make(one, other)))

export const ids: Row = {
  row: 105,
  title: 'ids that a shell, a terminal or a path would obey',
  cases: [
    ...each(DOORS, SPELLINGS, throughDoor),
    ...each(PASTES, MARK, pasted),
    ...FLAGGED.map(flagged),
    ...each(ROWS_SHOWN, SHOWN, shown),
  ],
}
