// The runtime files: projections of the log, the same bytes for the same log, written when a session rests.
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Hook, memory } from '../../src/index.ts'
import { checkpointOf, sessionStateOf, workingBufferOf, writeRuntimeFiles } from '../../src/memory/index.ts'
import { folderName } from '../../src/memory/runtime-files.ts'
import { askUserTool } from '../../src/tools/index.ts'
import { directiveTool, learningText, readLearning } from '../../src/tools/core/directive.ts'
import { admit, create, message } from '../contract/fixture.ts'
import { stage } from '../runtime/hooks-stage.ts'
import { closing, learns, logOf, place, staged } from './stage.ts'

const NAMES = ['checkpoint.json', 'session-state.md', 'working-buffer.md']

function filesOf(folder: string): readonly string[] {
  return NAMES.map((name) => readFileSync(join(folder, name), 'utf8'))
}

const directed = {
  calls: [
    {
      tool: 'loop_directive',
      id: 'd',
      args: {
        outcome: 'sleep',
        summary: 'The garden is planned; bulbs are ordered.',
        wakes: [{ reason: 'are the bulbs here?', delay_seconds: 3_600, key: 'bulbs' }],
        learnings: [{ kind: 'lesson', title: 'Bulbs', detail: 'Order in August.' }],
      },
    },
  ],
}

describe('runtime files', () => {
  it('B-MEMORY-1: when a session rests, three private files say where it stands (S4-23, S4-24)', async () => {
    const here = place()
    const { harness } = staged(here, [directed, '# Done\nBulbs are ordered.'])
    const { sessionId } = await harness.run('Plan the garden.')
    const folder = join(here.dir, sessionId)
    expect(readdirSync(folder).sort()).toEqual(NAMES)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    for (const name of NAMES) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600)
    const [checkpoint = '', state = '', buffer = ''] = filesOf(folder)
    const events = await logOf(here.store, sessionId)
    const wake = events.find((event) => event.type === 'wake.scheduled')
    const dueAt = new Date(wake?.due ?? 0).toISOString()
    expect(JSON.parse(checkpoint)).toMatchObject({
      version: 1,
      sessionId,
      agentId: 'default',
      updatedAt: new Date(events.at(-1)?.at ?? 0).toISOString(),
      lastEventIds: [`${sessionId}:2`],
      eventCursor: { lastProcessedEventId: `${sessionId}:2`, lastProducedEventId: `${sessionId}:${events.length}` },
      lastOutcome: 'sleep',
      lastSummary: 'The garden is planned; bulbs are ordered.',
      responseMessage: '# Done\nBulbs are ordered.',
      lastRunEnded: { type: 'completed' },
      nextWakeAt: dueAt,
      consecutiveFollowUps: 0,
      queuedWakes: [{ key: 'wake:bulbs', dueAt, reason: 'are the bulbs here?' }],
      stopReason: 'rescheduling',
      counts: { runs: 1, requests: 2, calls: 1, failed: 0 },
    })
    expect(state).toContain('> The garden is planned; bulbs are ordered.')
    expect(state).toContain('- lesson: Bulbs: Order in August.')
    expect(buffer).toContain('> Plan the garden.')
    expect(buffer).toContain(`Wait until ${dueAt}`)
    // Quoted text must not become a heading of these files.
    for (const text of [state, buffer]) expect(text).toContain('> # Done')
  })

  it('B-MEMORY-2: they are functions of the log alone: the same events, the same bytes, in every process', async () => {
    const here = place()
    const { harness } = staged(here, [directed, 'One.', 'Two.', 'Three.'])
    const session = await harness.open()
    for (const text of ['a', 'b', 'c']) await session.run(text)
    const events = await logOf(here.store, session.id)
    const written = filesOf(join(here.dir, session.id))
    // The hook has folded run by run, and these fold the whole log at once.
    const made = [checkpointOf, sessionStateOf, workingBufferOf].map((of) => of(session.id, events))
    expect(written).toEqual(made)
    const elsewhere = join(here.dir, 'elsewhere')
    expect(filesOf(await writeRuntimeFiles(here.store, session.id, elsewhere))).toEqual(made)
  })

  it('B-MEMORY-3: deleted, damaged or half written, they are there again byte for byte after a wake, which leaves no trace', async () => {
    const here = place()
    const first = staged(here, [directed, 'Done.'])
    const { sessionId } = await first.harness.run('Plan the garden.')
    const folder = join(here.dir, sessionId)
    const before = filesOf(folder)
    const log = await logOf(here.store, sessionId)
    for (const name of NAMES) rmSync(join(folder, name))
    await first.harness.work({ session: sessionId })
    expect(filesOf(folder)).toEqual(before)
    // By a harness that has never seen the session, too.
    rmSync(folder, { recursive: true })
    await staged(here, []).harness.work({ session: sessionId })
    expect(filesOf(folder)).toEqual(before)
    writeFileSync(join(folder, 'checkpoint.json'), '{"version": 1, "sess')
    await first.harness.work({ session: sessionId })
    expect(filesOf(folder)).toEqual(before)
    expect(await logOf(here.store, sessionId)).toEqual(log)
  })

  it('B-MEMORY-4: a session that waits for a person says for whom', async () => {
    const here = place()
    const asks = { calls: [{ tool: 'ask_user', args: { question: 'Red?' }, id: 'q' }] }
    const { harness } = staged(here, [asks, 'Red it is.'], {
      tools: [askUserTool(), directiveTool({ store: here.store })],
    })
    const session = await harness.open()
    const parked = await session.run('Paint it.')
    const call = parked.pending[0]?.callId ?? ''
    const [checkpoint = '', , buffer = ''] = filesOf(join(here.dir, session.id))
    expect(JSON.parse(checkpoint)).toMatchObject({
      stopReason: 'requires_action',
      waitingFor: [{ call, tool: 'ask_user', needs: 'answer' }],
    })
    expect(buffer).toContain(`Answer call ${call} of ask_user.`)
    await session.answer({ callId: call, content: 'Yes.' })
    await session.run()
    const [after = ''] = filesOf(join(here.dir, session.id))
    expect(JSON.parse(after)).toMatchObject({ stopReason: 'idle', waitingFor: [], responseMessage: 'Red it is.' })
  })

  it('B-MEMORY-5: whatever a session is called, its folder is below the given one and its own', async () => {
    const store = closing(memory())
    const { dir } = place()
    const names = [
      '..',
      '.',
      '../../escaped',
      '/etc/passwd',
      'a/b',
      'a%2Fb',
      '\u0000',
      '\uD800',
      'x'.repeat(500),
      '...hidden',
    ]
    const folders = new Set(names.map(folderName))
    expect(folders.size).toBe(names.length)
    for (const name of names.slice(2, 6)) {
      await create(store, name)
      await admit(store, name, message('m'))
      const folder = await writeRuntimeFiles(store, name, dir)
      expect(folder).toBe(join(dir, folderName(name)))
      expect(readdirSync(folder).sort()).toEqual(NAMES)
    }
    for (const folder of folders) expect(join(dir, folder).startsWith(`${dir}/`)).toBe(true)
    expect(existsSync(join(dir, '..', '..', 'escaped'))).toBe(false)
  })

  it('B-MEMORY-6: several writers at once leave the files of the whole log, and nothing beside them', async () => {
    const here = place()
    const { harness } = staged(here, ['One.', 'Two.', 'Three.'])
    const session = await harness.open()
    for (const text of ['a', 'b']) await session.run(text)
    const late = Array.from({ length: 8 }, () => writeRuntimeFiles(here.store, session.id, here.dir))
    await Promise.all([...late, session.run('c')])
    const events = await logOf(here.store, session.id)
    const folder = join(here.dir, session.id)
    expect(readdirSync(folder).sort()).toEqual(NAMES)
    expect(filesOf(folder)[0]).toBe(checkpointOf(session.id, events))
  })

  it('B-MEMORY-7: nothing is in them or in the learnings that the log does not have: a secret is a mark', async () => {
    const here = place()
    const secret = 'hunter2-hunter2'
    const taught = learns({ kind: 'error', title: 'Login', detail: `The password ${secret} is wrong.` })
    const well = learns({ kind: 'error', title: 'Login', detail: 'The password is wrong.' })
    const { harness } = staged(here, [taught, well, `Not ${secret}.`], { secrets: { LOGIN: secret } })
    const { sessionId } = await harness.run(`Try ${secret}.`)
    expect(await here.memory.list('default')).toMatchObject([{ detail: 'The password is wrong.' }])
    const folder = join(here.dir, sessionId)
    expect(filesOf(folder)[0]).toContain('Not ⟦secret:LOGIN⟧.')
    await here.memory.close()
    for (const text of [...filesOf(folder), readFileSync(here.file, 'latin1')]) expect(text).not.toContain(secret)
    // A mark may be longer than what a model may write.
    const marked = { kind: 'lesson', title: `${'x'.repeat(119)}⟦secret:LOGIN⟧`, detail: 'd' } as const
    expect(readLearning(learningText(marked))).toEqual(marked)
  })

  it('B-MEMORY-8: a folder that cannot be written is reported, and the run is as it would be', async () => {
    const here = place()
    const errors: string[] = []
    writeFileSync(here.dir, 'a file where the folder should be')
    const onError = (where: string): void => void errors.push(where)
    const { harness } = staged(here, ['Done.'], { onError, strict: true })
    expect(await harness.run('Do it.')).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(errors).toContain('hook session_rest')
  })

  it('B-MEMORY-9: a session_rest hook is told each time a worker looked and nothing is left to do, and what the session waits for', async () => {
    const told: unknown[] = []
    const rest: Hook = { type: 'session_rest', run: (event) => void told.push(event) }
    const only: Hook = { type: 'session_rest', agents: ['other'], run: () => void told.push('other') }
    const subagents = { other: { description: 'Another agent', instructions: '' } }
    const asks = { calls: [{ tool: 'ask_user', args: { question: 'Red?' }, id: 'q' }] }
    const { harness } = stage(['Done.', asks], [rest, only], { tools: [askUserTool()], subagents })
    const session = await harness.open()
    const at = { session: session.id, agent: 'default', metadata: {} }
    await session.run('Do it.')
    await harness.work({ session: session.id })
    await session.run('Paint it.')
    expect(told).toEqual([
      { ...at, waiting: 'input' },
      { ...at, waiting: 'input' },
      { ...at, waiting: 'answer' },
    ])
  })
})
