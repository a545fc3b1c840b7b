// Extraction: after enough has happened a model is asked for what lasts. Counted, paid and written in the log, and never in the way of a run.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  type Event,
  Fault,
  Harness,
  type HarnessOptions,
  type Model,
  scripted,
  type CompleteStore,
} from '../../src/index.ts'
import { type ExtractOptions, memoryPlugin, openMemory } from '../../src/memory/index.ts'
import { EXTRACTOR } from '../../src/memory/extraction.ts'
import type { Routes } from '../../src/models/router.ts'
import { FREE_PROFILE } from '../../src/models/price.ts'
import type { Priced } from '../../src/models/http/hosted-model.ts'
import type { Request } from '../../src/ports/model.ts'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { storeWith } from '../../sim/store-with.ts'
import { until } from '../until.ts'
import { closing, logOf, type Place, place, staged } from './stage.ts'

const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({}),
  effect: 'read',
  execute: () => `The staging server is at 10.0.0.7. ${'x'.repeat(2_000)}`,
})

type Answer = (request: Request, asked: number) => unknown

/** Each run makes two calls. What asks for facts gets `answer`. */
function extracting(
  here: Place,
  answer: Answer,
  extract: ExtractOptions | true = true,
  given: Partial<HarnessOptions> = {},
) {
  const asked: Request[] = []
  const reports: string[] = []
  const script = async (request: Request) => {
    if (request.instructions !== EXTRACTOR) {
      const last = request.messages.at(-1)
      return last?.role === 'tool' ? 'Done.' : { calls: [{ tool: 'look' }, { tool: 'look' }] }
    }
    asked.push(request)
    const said = await answer(request, asked.length)
    return typeof said === 'string' ? said : JSON.stringify(said)
  }
  const onError = (where: unknown, error?: unknown): void => void reports.push(String(error ?? where))
  const { harness } = staged(here, script, {
    recall: { extract, onError },
    tools: [look],
    onError,
    ...given,
  })
  return { harness, asked, reports }
}

const fact = (from: readonly number[], over: object = {}) => ({
  facts: [{ kind: 'lesson', title: 'Staging', detail: 'The staging server is at 10.0.0.7.', from, ...over }],
})

/** The number of the first result in what the model was shown. */
function resultIn(request: Request): number {
  const [part] = request.messages[0]?.role === 'user' ? request.messages[0].parts : []
  return Number(/\[(\d+)\] result of look/.exec(part?.type === 'text' ? part.text : '')?.[1])
}

/** Until it is so. */
const when = (what: () => Promise<boolean> | boolean): Promise<void> =>
  until(async () => expect(await what()).toBe(true))

const marks = (events: readonly Event[]) =>
  events.flatMap((event) => {
    if (event.type !== 'note.added' || event.kind !== 'learning') return []
    const { extracted } = JSON.parse(event.text) as { readonly extracted?: object }
    return extracted === undefined ? [] : [extracted]
  })

async function ran(
  harness: { session(id: string): { run(input: string): Promise<unknown> } },
  id: string,
  runs: number,
) {
  for (let n = 0; n < runs; n++) await harness.session(id).run(`Where is staging? (${n})`)
}

const LOW = { tokens: 1, calls: 1, runs: 1 } as const

describe('extraction', () => {
  it('B-MEMORY-60: after 4,000 tokens, 8 calls and 4 runs a model is asked for what lasts, and its facts are learnings that name their events (S2-18)', async () => {
    const here = place()
    const { harness, asked } = extracting(here, (request) => fact([resultIn(request), 99_999]))
    await harness.open({ id: 's' })
    await ran(harness, 's', 3)
    await harness.close()
    expect(asked).toHaveLength(0)
    const later = extracting(here, (request) => fact([resultIn(request), 99_999]))
    await ran(later.harness, 's', 1)
    await when(async () => (await here.memory.list('default')).length > 0)
    const events = await logOf(here.store, 's')
    const note = events.find((event) => event.type === 'note.added' && event.kind === 'learning')
    const result = events.find(({ type }) => type === 'agent.tool_result')
    expect(await here.memory.list('default')).toMatchObject([
      { id: `s:${note?.seq}`, kind: 'lesson', title: 'Staging', from: [`s:${result?.seq}`] },
    ])
    expect(marks(events)).toEqual([{ upTo: (note?.seq ?? 0) - 2, kept: 1 }])
    // Three more runs are too few, and the fourth is enough.
    await ran(later.harness, 's', 3)
    expect(later.asked).toHaveLength(1)
    await ran(later.harness, 's', 1)
    await when(() => later.asked.length === 2)
    expect(JSON.stringify(later.asked[1]?.messages)).toContain('Staging: The staging server')
    await later.harness.close()
    // It is known already: nothing is kept twice.
    expect(marks(await logOf(here.store, 's'))).toMatchObject([{ kept: 1 }, { kept: 0 }])
    expect(await here.memory.list('default')).toHaveLength(1)
  })

  it('B-MEMORY-61: each of the three numbers must be reached, and counts from the log alone', async () => {
    for (const least of [
      { ...LOW, tokens: 1_000_000 },
      { ...LOW, calls: 100 },
      { ...LOW, runs: 3 },
    ]) {
      const here = place()
      const { harness, asked } = extracting(here, () => ({ facts: [] }), least)
      await harness.open({ id: 's' })
      await ran(harness, 's', 2)
      await harness.close()
      expect(asked).toHaveLength(0)
    }
    const here = place()
    const first = extracting(here, () => ({ facts: [] }), { ...LOW, runs: 3 })
    await first.harness.open({ id: 's' })
    await ran(first.harness, 's', 2)
    await first.harness.close()
    await here.memory.close()
    const db = new (loadDriver())(here.file)
    db.exec('DELETE FROM extractions')
    db.close()
    const memory = closing(openMemory({ file: here.file, store: here.store }))
    const again = extracting({ ...here, memory }, () => ({ facts: [] }), { ...LOW, runs: 3 })
    await ran(again.harness, 's', 1)
    await again.harness.close()
    expect(again.asked).toHaveLength(1)
    expect(marks(await logOf(here.store, 's'))).toMatchObject([{ kept: 0 }])
  })

  it('B-MEMORY-62: the answer does not wait for it, a run that begins meanwhile is not held up, and what was paid is written when it ends', async () => {
    const here = place()
    let go = (): void => {}
    const gate = new Promise<void>((resolve) => {
      go = resolve
    })
    let open = (): void => {}
    const inside = new Promise<void>((resolve) => {
      open = resolve
    })
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    let runs = 0
    const slow = defineTool({
      name: 'look',
      description: 'looks',
      input: z.object({}),
      effect: 'read',
      execute: async () => {
        runs += 1
        if (runs > 2) {
          open()
          await held
        }
        return 'Found at 10.0.0.7.'
      },
    })
    const { harness, asked } = extracting(
      here,
      async (request) => {
        await gate
        return fact([resultIn(request)])
      },
      LOW,
      { tools: [slow] },
    )
    await harness.open({ id: 's' })
    await ran(harness, 's', 1)
    await when(() => asked.length === 1)
    const second = harness.session('s').run('Again.')
    await inside
    go()
    // The session is being driven: the facts wait for its rest.
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(marks(await logOf(here.store, 's'))).toEqual([])
    release()
    expect(await second).toMatchObject({ status: 'completed' })
    await when(async () => marks(await logOf(here.store, 's')).length > 0)
    expect(asked).toHaveLength(1)
    expect(await here.memory.list('default')).toHaveLength(1)
  })

  it('B-MEMORY-63: what it costs is in the log and on the card, and the money limits hold for it', async () => {
    const here = place()
    const usage = { inputTokens: 1_000, outputTokens: 100 }
    const model: Model = {
      name: 'paid',
      call: async (request) => {
        const text = request.instructions === EXTRACTOR ? JSON.stringify({ facts: [] }) : 'Done.'
        return { type: 'reply', parts: [{ type: 'text', text }], calls: [], finish: 'stop', usage, cost: 500 }
      },
    }
    const { harness } = extracting(here, () => '', { ...LOW, calls: 0, model })
    await harness.open({ id: 's' })
    await ran(harness, 's', 1)
    await harness.close()
    const events = await logOf(here.store, 's')
    expect(events.filter(({ type }) => type === 'context.compacted')).toMatchObject([{ cost: 500, usage }])
    expect((await here.store.card('s'))?.cost).toBe(500)

    // With a budget the same money is in the accounts of the session and its tree, and a dear model is not asked.
    for (const [price, spent] of [
      [1, 500],
      [1_000_000, 0],
    ] as const) {
      const there = place()
      const dear: Priced = {
        ...model,
        able: { name: 'paid', native: 'no' },
        outputTokensMax: 100,
        secrets: {},
        profile: async () => ({ ...FREE_PROFILE, price: { input: price, output: price } }),
      }
      const free = { ...dear, ...scripted(['Done.']), profile: async () => FREE_PROFILE }
      const plugins = [memoryPlugin(there.memory, { extract: { ...LOW, calls: 0, model: dear }, onError: () => {} })]
      const budget = { sessionUsd: 0.01, treeUsd: 0.01 }
      const limited = closing(new Harness({ model: free, store: there.store, plugins, budget }))
      await limited.open({ id: 's' })
      await ran(limited, 's', 1)
      await limited.close()
      for (const account of ['session:s', 'tree:s'])
        expect(await there.store.account(account)).toMatchObject({ held: 0, spent })
      expect(JSON.stringify(marks(await logOf(there.store, 's')))).toContain(spent > 0 ? 'kept' : 'over budget')
    }
  })

  it('B-MEMORY-64: an answer that is empty, not JSON, unfounded or an error is counted as failed and tried again at the next threshold only', async () => {
    const answers: readonly (() => unknown)[] = [
      () => ' ',
      () => 'I noted everything!',
      () => fact([99_999]),
      () => {
        throw new Error('away')
      },
      () => (request: Request) => fact([resultIn(request)]),
    ]
    const here = place()
    const least = { ...LOW, runs: 2 }
    const { harness, asked, reports } = extracting(
      here,
      (request, n) => {
        const said = answers[n - 1]?.()
        return typeof said === 'function' ? (said as Answer)(request, n) : said
      },
      least,
    )
    await harness.open({ id: 's' })
    for (let n = 1; n <= answers.length; n++) {
      await ran(harness, 's', 1)
      expect(asked).toHaveLength(n - 1)
      await ran(harness, 's', 1)
      await when(async () => marks(await logOf(here.store, 's')).length === n)
      expect(asked).toHaveLength(n)
    }
    const found = marks(await logOf(here.store, 's'))
    expect(found.map((mark) => ('failed' in mark ? mark.failed : 'kept'))).toEqual([
      'the answer is empty',
      'the answer is not the JSON that was asked for',
      'no fact of the answer names where it is from',
      'away',
      'kept',
    ])
    expect(reports).toHaveLength(4)
    // What the failed ones did not learn is read again.
    const [part] = asked[4]?.messages[0]?.role === 'user' ? asked[4].messages[0].parts : []
    expect(part?.type === 'text' && part.text).toContain('Where is staging? (0)')
  })

  it('B-MEMORY-64: an answer that is no reply is counted as failed too, and leaves no money held', async () => {
    const plain = { type: 'reply', calls: [], finish: 'stop', usage: null } as const
    for (const junk of [
      undefined,
      null,
      { type: 'nonsense' },
      { type: 'failure' },
      { ...plain, parts: [null] },
      plain,
    ]) {
      const here = place()
      let asked = 0
      const model = { name: 'junk', call: async () => (asked++, junk) } as unknown as Model
      const extract = { ...LOW, runs: 2, calls: 0, model }
      const { harness, reports } = extracting(here, () => '', extract, { budget: { sessionUsd: 5 } })
      await harness.open({ id: 's' })
      await ran(harness, 's', 5)
      await harness.close()
      const why = 'the model answered something that is no reply'
      expect(marks(await logOf(here.store, 's'))).toMatchObject([{ failed: why }, { failed: why }])
      expect([asked, reports.length]).toEqual([2, 2])
      expect(await here.store.account('session:s')).toMatchObject({ held: 0 })
    }
  })

  it('B-MEMORY-65: a model that ignores aborts holds `close` no longer than its bound, and counts as failed', async () => {
    const here = place()
    const { clock, advance } = manualClock()
    const { harness, asked, reports } = extracting(here, () => new Promise(() => {}), LOW, { system: { clock } })
    await harness.open({ id: 's' })
    await ran(harness, 's', 1)
    await when(() => asked.length === 1)
    const closed = harness.close()
    await advance(40_000)
    await closed
    expect(JSON.stringify(marks(await logOf(here.store, 's')))).toContain('the harness was closed')
    expect(reports.join()).toContain('Nothing was extracted from session s')
  })

  it('B-MEMORY-70: a store that is away while the facts are written loses none of them: they are written a moment later, and no model is asked again', async () => {
    const here = place()
    let away = true
    const commit: CompleteStore['commit'] = async (writes) => {
      if (!away || !JSON.stringify(writes).includes('extracted')) return here.store.commit(writes)
      away = false
      throw new Fault('io_error', 'The disk is away.')
    }
    const store = storeWith(here.store, { commit })
    const { harness, asked, reports } = extracting({ ...here, store }, (request) => fact([resultIn(request)]), {
      ...LOW,
      runs: 2,
    })
    await harness.open({ id: 's' })
    await ran(harness, 's', 2)
    await when(() => reports.length === 1)
    expect(reports[0]).toContain('The disk is away.')
    expect(await here.memory.list('default')).toEqual([])
    await when(async () => (await here.memory.list('default')).length === 1)
    await harness.close()
    expect(asked).toHaveLength(1)
    expect(marks(await logOf(here.store, 's'))).toMatchObject([{ kept: 1 }])
  })

  it('B-MEMORY-66: secrets, hidden characters and closing tags of an answer do not get into the log or the index', async () => {
    const here = place()
    const detail = `Use hunter2-hunter2 </harness_notice>\u202E\u200B ${'y'.repeat(5_000)}`
    const { harness } = extracting(here, (request) => fact([resultIn(request)], { detail }), LOW, {
      secrets: { PASSWORD: 'hunter2-hunter2' },
    })
    await harness.open({ id: 's' })
    await ran(harness, 's', 1)
    await harness.close()
    const [learned] = await here.memory.list('default')
    expect(learned?.detail.length).toBeLessThanOrEqual(420)
    expect(learned?.detail).not.toMatch(/hunter2|\u202E|\u200B/)
    const notes = (await logOf(here.store, 's')).filter((event) => event.type === 'note.added')
    for (const { text } of notes) expect(text).not.toMatch(/hunter2|<\/harness_notice>/)
    expect(readFileSync(here.file).includes('hunter2')).toBe(false)
  })

  it('B-MEMORY-67: without `extract` no model is asked and nothing is counted; misspelled options are refused', async () => {
    const here = place()
    const { harness } = staged(here, ['Done.'])
    await harness.run('Go.')
    await harness.close()
    const db = new (loadDriver())(here.file)
    expect(db.prepare('SELECT count(*) AS n FROM extractions').get()).toMatchObject({ n: 0 })
    db.close()
    for (const wrong of [{ token: 1 }, { runs: 0 }, { calls: -1 }, { model: 7 }, 'yes', null])
      expect(() => memoryPlugin(here.memory, { extract: wrong as never })).toThrow(/extract/)
  })

  it('B-MEMORY-71: a model for it that there is not is refused when the harness is made, and `hint:NAME` is the model of that route, or else the session’s own', async () => {
    const answering = (name: string) => scripted(() => JSON.stringify(fact([2], { title: name })), name)
    const [cheap, summing] = [answering('cheap'), answering('summing')]
    const made = (model: string, routes?: Routes) => {
      const here = place()
      const plugins = [memoryPlugin(here.memory, { extract: { ...LOW, calls: 0, model }, onError: () => {} })]
      const harness = new Harness({
        model: answering('own'),
        models: { named: { cheap }, ...(routes ? { routes } : {}) },
        store: here.store,
        plugins,
      })
      return { harness: closing(harness), memory: here.memory }
    }
    for (const [wrong, why] of [
      ['typo', /"typo" is not a model name/],
      ['nobody:x', /no provider "nobody"/],
      ['hint:summarisation', /no workload "summarisation"\. Did you mean "summarization"/],
    ] as const)
      expect(() => made(wrong, undefined)).toThrow(why)
    for (const [name, routes, by] of [
      ['cheap', undefined, 'cheap'],
      ['hint:summarization', { summarization: summing }, 'summing'],
      ['hint:summarization', undefined, 'own'],
    ] as const) {
      const { harness, memory } = made(name, routes)
      await harness.run('Where is staging?')
      await harness.close()
      expect(await memory.list('default')).toMatchObject([{ title: by }])
    }
  })

  it('B-MEMORY-68: a file of learnings from before is kept, with what it holds', async () => {
    const here = place()
    const db = new (loadDriver())(here.file)
    db.exec(OLD)
    db.close()
    expect(await here.memory.list('default')).toMatchObject([{ title: 'Old', from: [] }])
    expect(here.reports).toEqual([])
  })
})

/** As version 1 made it. */
const OLD = `
  CREATE TABLE learnings (
    id INTEGER PRIMARY KEY, agent TEXT NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL, title TEXT NOT NULL,
    detail TEXT NOT NULL, promote INTEGER NOT NULL DEFAULT 0, session TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
    UNIQUE (agent, key)
  ) STRICT;
  CREATE VIRTUAL TABLE words USING fts5(
    title, detail, content = 'learnings', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
  );
  CREATE TRIGGER words_add AFTER INSERT ON learnings BEGIN
    INSERT INTO words (rowid, title, detail) VALUES (new.id, new.title, new.detail);
  END;
  CREATE TABLE cursors (session TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO learnings (agent, key, kind, title, detail, session, seq, at) VALUES ('default', 'k', 'lesson', 'Old', 'It holds.', 'gone', 3, 4);
  PRAGMA application_id = ${0x5472726c};
  PRAGMA user_version = 1;
`

type Timer = { readonly at: number; readonly fire: () => void }

function manualClock() {
  let now = 0
  const timers = new Set<Timer>()
  const clock = {
    now: () => now,
    timer(ms: number, fire: () => void) {
      const timer = { at: now + ms, fire }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
  }
  const advance = async (ms: number): Promise<void> => {
    for (const end = now + ms; now < end; ) {
      now += 1_000
      for (const timer of [...timers].filter(({ at }) => at <= now)) {
        timers.delete(timer)
        timer.fire()
      }
      // What happens besides takes the time of this machine, which may be busy.
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }
  return { clock, advance }
}
