// `terret acp` as an editor sees it: the official client of the protocol over the pipes of one real process, on a real file. What needs
// more processes is acp.long.test.ts.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { methods, type RequestError } from '@agentclientprotocol/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Chaos, startChaos } from '../../src/testing/index.ts'
import { endpoint, MAIN, openStage, type Stage } from '../cli/stage.ts'
import { callsIn, type Editor, openEditor, picks, said, Script } from './editor.ts'

const write = (path: string, content: string) => ({ tool: 'write', args: { path, content } })
const { session } = methods.agent
const script = new Script()
const DIST = dirname(dirname(MAIN))
let stage: Stage
let chaos: Chaos
let editor: Editor

beforeAll(async () => {
  stage = openStage()
  chaos = await startChaos({ script: script.reply })
  stage.configure(endpoint(chaos.url))
  editor = await openEditor(stage)
})
afterAll(async () => {
  await editor.kill()
  await chaos.close()
  stage.close()
})

type Logged = { readonly type: string; readonly digest?: string; readonly allow?: boolean; readonly outcome?: object }

async function logOf(id: string): Promise<readonly Logged[]> {
  const { out } = await stage.terret('history', id, '--json')
  return out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Logged)
}

async function refusal(asked: Promise<unknown>): Promise<RequestError> {
  const ended = await asked.catch((error: unknown) => error)
  expect(ended).toBeInstanceOf(Error)
  return ended as RequestError
}

describe('terret acp', () => {
  it('B-ACP-1: a prompt streams thoughts and text in pieces, and ends with why it ended', async () => {
    const id = await editor.open()
    const text = script.on('Say hello.', { text: 'Hello from the agent.', reasoning: 'A greeting.', deltas: 4 })
    expect(await editor.prompt(id, text)).toBe('end_turn')
    expect(said(editor.of(id))).toBe('Hello from the agent.')
    expect(said(editor.of(id), 'agent_thought_chunk')).toBe('A greeting.')
    const pieces = editor.of(id).filter((update) => update.sessionUpdate === 'agent_message_chunk')
    expect(pieces.length).toBeGreaterThan(1)
    expect(new Set(pieces.map((piece) => ('messageId' in piece ? piece.messageId : null))).size).toBe(1)
    expect(said(editor.of(id), 'user_message_chunk')).toBe('')
  })

  it('B-ACP-2: calls are told with title, kind, files and differences, and the board of the session is the plan', async () => {
    const id = await editor.open()
    stage.write('work/notes.txt', 'tea\n')
    const cards = [{ text: 'look', status: 'done' }, { text: 'write', status: 'in_progress' }, { text: 'rest' }]
    const text = script.on(
      'Plan it.',
      {
        calls: [
          { tool: 'todo', args: { action: 'add', cards } },
          { tool: 'read', args: { path: 'notes.txt' } },
        ],
      },
      'Planned.',
    )
    expect(await editor.prompt(id, text)).toBe('end_turn')
    const path = join(stage.folder, 'notes.txt')
    const read = callsIn(editor.of(id)).filter(({ toolCallId }) => toolCallId.endsWith('.1'))
    expect(read).toMatchObject([
      {
        title: 'read notes.txt',
        kind: 'read',
        status: 'pending',
        locations: [{ path }],
        rawInput: { path: 'notes.txt' },
      },
      { status: 'in_progress' },
      { status: 'completed', content: [{ content: { text: expect.stringContaining('tea') as string } }] },
    ])
    const plan = editor.of(id).findLast((update) => update.sessionUpdate === 'plan')
    expect(plan).toMatchObject({
      entries: [
        { content: 'look', status: 'completed' },
        { content: 'write', status: 'in_progress' },
        { content: 'rest', status: 'pending' },
      ],
    })
  })

  it('B-ACP-3: an allowed call runs exactly as it was shown, and the log has the digest and who allowed it', async () => {
    const id = await editor.open()
    editor.permit = picks('allow_once')
    editor.forget()
    stage.write('work/a.txt', 'old\n')
    expect(await editor.prompt(id, script.on('Write a.', { calls: [write('a.txt', 'new\n')] }, 'Done.'))).toBe(
      'end_turn',
    )
    expect(readFileSync(join(stage.folder, 'a.txt'), 'utf8')).toBe('new\n')
    const [asked] = editor.asked
    const path = join(stage.folder, 'a.txt')
    const diff = { type: 'diff', path, oldText: 'old\n', newText: 'new\n' }
    expect(asked?.toolCall).toMatchObject({
      kind: 'edit',
      title: 'write a.txt',
      locations: [{ path }],
      content: [diff],
    })
    expect(asked?.toolCall.rawInput).toEqual({ path: 'a.txt', content: 'new\n' })
    const word = (await logOf(id)).find(({ type }) => type === 'user.tool_confirmation')
    expect(word).toMatchObject({ allow: true, by: expect.any(String) as string })
    expect(asked?.options.map(({ optionId }) => optionId)).toEqual([`allow:${word?.digest}`, `deny:${word?.digest}`])
    expect(callsIn(editor.of(id)).map(({ status }) => status)).toEqual(['pending', 'in_progress', 'completed'])
    // What the file was before is in the log, so the history shows the same difference.
    expect(callsIn(await editor.load(id)).at(-1)?.content).toContainEqual(diff)
  })

  it('B-ACP-4: a denied call does not run, and the model is told', async () => {
    const id = await editor.open()
    editor.permit = picks('reject_once')
    const text = script.on('Write b.', { calls: [write('b.txt', 'x')] }, 'I did not.')
    expect(await editor.prompt(id, text)).toBe('end_turn')
    expect(existsSync(join(stage.folder, 'b.txt'))).toBe(false)
    expect(callsIn(editor.of(id)).at(-1)).toMatchObject({ status: 'failed' })
    expect(JSON.stringify(script.requests.at(-1)?.body)).toMatch(/denied/i)
    expect(said(editor.of(id))).toBe('I did not.')
  })

  it('B-ACP-5: an answer that was not offered decides nothing: the prompt ends with how to decide, and the call waits', async () => {
    const id = await editor.open()
    editor.permit = () => ({ outcome: { outcome: 'selected', optionId: 'allow' } })
    const text = script.on('Write c.', { calls: [write('c.txt', 'x')] }, 'Done.')
    const { message } = await refusal(editor.prompt(id, text))
    expect(message).toContain(`terret approve ${id}`)
    expect(existsSync(join(stage.folder, 'c.txt'))).toBe(false)
    expect((await logOf(id)).some(({ type }) => type === 'user.tool_confirmation')).toBe(false)
    // The next prompt asks again, and is read after the decision.
    editor.permit = picks('allow_once')
    expect(await editor.prompt(id, script.on('Go on.', 'All done.'))).toBe('end_turn')
    expect(existsSync(join(stage.folder, 'c.txt'))).toBe(true)
  })

  it('B-ACP-6: a cancel in the middle of a reply ends the prompt as cancelled, and the next prompt is answered', async () => {
    const id = await editor.open()
    const text = script.on('A story.', {
      text: 'Once upon a time. '.repeat(50),
      deltas: 50,
      chaos: { stallAfterBytes: 2_000 },
    })
    const prompt = editor.prompt(id, text)
    await editor.sees(id, ({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk')
    await editor.cancel(id)
    expect(await prompt).toBe('cancelled')
    expect((await logOf(id)).at(-1)).toMatchObject({ type: 'run.settled', outcome: { type: 'interrupted' } })
    expect(await editor.prompt(id, script.on('Another.', 'Fine.'))).toBe('end_turn')
    expect(said(editor.of(id))).toMatch(/Fine\.$/)
  })

  it('B-ACP-7: a cancel while a person is asked withdraws the question, and the call never runs', async () => {
    const id = await editor.open()
    let withdrawn = false
    editor.permit = (_, signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          withdrawn = true
          resolve({ outcome: { outcome: 'cancelled' } })
        })
      })
    editor.forget()
    const prompt = editor.prompt(id, script.on('Write d.', { calls: [write('d.txt', 'x')] }))
    await editor.sees(id, ({ sessionUpdate }) => sessionUpdate === 'tool_call')
    await editor.cancel(id)
    expect(await prompt).toBe('cancelled')
    expect([withdrawn || editor.asked.length === 0, existsSync(join(stage.folder, 'd.txt'))]).toEqual([true, false])
  })

  it('B-ACP-9: a question with choices is answered by one of them; another by the next message', async () => {
    const id = await editor.open()
    editor.permit = ({ options }) => ({ outcome: { outcome: 'selected', optionId: options[1]?.optionId ?? '' } })
    const ask = (args: object) => ({ calls: [{ tool: 'ask_user', args: args as { question: string } }] })
    const text = script.on(
      'Ask me.',
      ask({ question: 'Tea or coffee?', choices: ['tea', 'coffee'] }),
      ask({ question: 'How much?' }),
      'Two cups of coffee.',
    )
    expect(await editor.prompt(id, text)).toBe('end_turn')
    expect(said(editor.of(id))).toBe('How much?')
    expect(JSON.stringify(script.requests.at(-1)?.body)).toContain('coffee')
    expect(await editor.prompt(id, 'two cups')).toBe('end_turn')
    expect(JSON.stringify(script.requests.at(-1)?.body)).toContain('two cups')
    expect(said(editor.of(id))).toBe('How much?Two cups of coffee.')
    const results = (await logOf(id)).filter(({ type }) => type === 'user.custom_tool_result')
    expect(results).toMatchObject([{ content: 'coffee' }, { content: 'two cups' }])
  })

  it('B-ACP-10: sessions are listed with folder, title and time, resumed without their history, and closed', async () => {
    const id = await editor.open()
    await editor.prompt(id, script.on('Remember the blue door.', 'Noted.'))
    const { sessions } = await editor.agent.request(session.list, { cwd: stage.folder })
    expect(sessions.find(({ sessionId }) => sessionId === id)).toMatchObject({
      cwd: stage.folder,
      title: 'Remember the blue door.',
      updatedAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    })
    await editor.agent.request(session.close, { sessionId: id })
    expect(await refusal(editor.prompt(id, 'Hello?'))).toMatchObject({ code: -32_002 })
    editor.forget()
    await editor.agent.request(session.resume, { ...editor.place, sessionId: id })
    expect(editor.of(id)).toEqual([])
    expect(await editor.prompt(id, script.on('Which door?', 'The blue one.'))).toBe('end_turn')
    expect(said(editor.of(id))).toBe('The blue one.')
    expect(JSON.stringify(script.requests.at(-1)?.body)).toContain('Remember the blue door.')
  })

  it('B-ACP-11: a session has the modes that its folder allows, and a set mode counts from the next prompt on', async () => {
    const { sessionId: id, modes } = await editor.agent.request(session.new, editor.place)
    expect(modes).toMatchObject({ currentModeId: 'ask' })
    expect(modes?.availableModes.map((mode) => mode.id)).toEqual(['plan', 'ask', 'auto'])
    editor.forget()
    await editor.agent.request(session.setMode, { sessionId: id, modeId: 'auto' })
    await editor.prompt(id, script.on('Write e.', { calls: [write('e.txt', 'x')] }, 'Done.'))
    expect([editor.asked.length, existsSync(join(stage.folder, 'e.txt'))]).toEqual([0, true])
    const { message } = await refusal(editor.agent.request(session.setMode, { sessionId: id, modeId: 'yolo' }))
    expect(message).toContain('plan, ask, auto')
  })

  it('B-ACP-12: what is wrong is refused with a sentence: session, folder, second prompt, cursor, empty prompt', async () => {
    const id = await editor.open()
    const { agent } = editor
    const elsewhere = { ...editor.place, cwd: stage.config.replace(/config.*/, 'bin') }
    await editor.prompt(id, script.on('First.', 'Fine.'))
    expect(await refusal(editor.prompt('no-such', 'Hello.'))).toMatchObject({ code: -32_002 })
    expect(await refusal(editor.load('no-such'))).toMatchObject({ code: -32_002 })
    expect((await refusal(agent.request(session.new, { ...editor.place, cwd: 'here' }))).message).toContain('full path')
    expect((await refusal(agent.request(session.load, { ...elsewhere, sessionId: id }))).message).toContain(
      'that folder',
    )
    expect(await refusal(agent.request(session.list, { cursor: 'x' }))).toMatchObject({ code: -32_602 })
    expect((await refusal(agent.request(session.prompt, { sessionId: id, prompt: [] }))).message).toContain('prompt')
    const first = editor.prompt(id, script.on('Slow.', { text: 'Slow.', chaos: { stallAfterBytes: 0 } }))
    expect((await refusal(editor.prompt(id, 'Second.'))).message).toContain('at work')
    await editor.cancel(id)
    expect(await first).toBe('cancelled')
  })

  it('B-ACP-20: nothing of the protocols is loaded unless it is served', () => {
    const seen = new Set<string>()
    const open = ['cli/main.js', 'index.js', 'tools/index.js'].map((name) => join(DIST, name))
    for (let file = open.pop(); file !== undefined; file = open.pop()) {
      if (seen.has(file)) continue
      seen.add(file)
      const text = readFileSync(file, 'utf8')
      expect([file, text.includes('session/request_permission'), text.includes('resources/templates/list')]).toEqual([
        file,
        false,
        false,
      ])
      for (const [, path] of text.matchAll(/^(?:import|export)\b[^;]*?["'](\.[^"']+)["']/gm))
        open.push(join(dirname(file), path ?? ''))
    }
    expect(seen.size).toBeGreaterThan(5)
  })

  it('B-ACP-13: unknown flags are refused, and a run that fails is an error that says why', async () => {
    const refused = await stage.refused('acp', '--modle', 'x')
    expect(refused).toMatchObject({ code: 2, out: '', err: expect.stringContaining('--model') as string })
    const id = await editor.open()
    const text = script.on('Fail.', { status: 'unauthorized' }, { status: 'unauthorized' })
    expect((await refusal(editor.prompt(id, text))).message).not.toBe('')
    expect(existsSync(join(stage.folder, 'f.txt'))).toBe(false)
  })
})
