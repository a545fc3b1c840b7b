// `terret acp` with more than one process: killed and loaded again, decided elsewhere, and with MCP servers that the editor names.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { methods, type NewSessionRequest } from '@agentclientprotocol/sdk'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ChaosReply } from '../../src/testing/index.ts'
import { stageOfEach } from '../cli/scripted.ts'
import { until } from '../until.ts'
import { callsIn, type Editor, type EditorOptions, openEditor, picks, said } from './editor.ts'

const { scriptedBy, stage } = stageOfEach()
const write = (path: string, content: string) => ({ tool: 'write', args: { path, content } })
const ask = (question: string): ChaosReply => ({ calls: [{ tool: 'ask_user', args: { question } }] })
const never = () => new Promise<never>(() => {})
const ODD = fileURLToPath(new URL('../tools/mcp-servers/odd.mjs', import.meta.url))

async function editorOf(options: EditorOptions = {}): Promise<Editor> {
  const editor = await openEditor(stage, options)
  onTestFinished(() => editor.kill())
  return editor
}

describe('terret acp', () => {
  it('B-ACP-8: after kill -9 the session is loaded whole, nothing twice, and goes on with the next prompt', async () => {
    await scriptedBy([
      { text: 'First answer.', reasoning: 'Thinking.' },
      { calls: [write('a.txt', 'x')] },
      { text: 'Second answer.' },
    ])
    const editor = await editorOf({ permit: never })
    const id = await editor.open()
    expect(await editor.prompt(id, 'One.')).toBe('end_turn')
    const lost = editor.prompt(id, 'Two.').catch(() => 'lost')
    await editor.sees(id, ({ sessionUpdate }) => sessionUpdate === 'tool_call')
    await editor.kill()
    expect(await lost).toBe('lost')

    const again = await editorOf({ permit: picks('allow_once') })
    const history = await again.load(id)
    expect(said(history, 'user_message_chunk')).toBe('One.Two.')
    expect(said(history)).toBe('First answer.')
    expect(said(history, 'agent_thought_chunk')).toBe('Thinking.')
    expect(callsIn(history).map(({ title, status }) => [title, status])).toEqual([['write a.txt', 'pending']])
    again.forget()
    expect(await again.prompt(id, 'Three.')).toBe('end_turn')
    expect(readFileSync(join(stage.folder, 'a.txt'), 'utf8')).toBe('x')
    expect(said(again.of(id))).toBe('Second answer.')
    expect(said(again.of(id), 'user_message_chunk')).toBe('')
    const whole = await again.load(id)
    expect(said(whole, 'user_message_chunk')).toBe('One.Two.Three.')
    expect(said(whole)).toBe('First answer.Second answer.')
    expect(callsIn(whole).map(({ status }) => status)).toEqual(['pending', 'in_progress', 'completed'])
  })

  it('B-ACP-8: killed in the middle of a reply, what was half said is not in the history, and the run goes on once', async () => {
    const { requests } = await scriptedBy([
      { text: 'Half a reply that breaks off. '.repeat(40), deltas: 40, chaos: { stallAfterBytes: 2_000 } },
      'The whole reply.',
    ])
    const editor = await editorOf()
    const id = await editor.open()
    const lost = editor.prompt(id, 'Tell me.').catch(() => 'lost')
    await editor.sees(id, ({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk')
    await editor.kill()
    expect(await lost).toBe('lost')
    const again = await editorOf()
    expect(said(await again.load(id))).toBe('')
    expect(await again.prompt(id, 'Go on.')).toBe('end_turn')
    expect(said(await again.load(id))).toBe('The whole reply.')
    expect(requests).toHaveLength(2)
  })

  it('B-ACP-14: a call that is decided elsewhere is not asked any more, and the prompt goes on', async () => {
    await scriptedBy([{ calls: [write('a.txt', 'x')] }, 'Done.'])
    let withdrawn = false
    const editor = await editorOf({
      permit: (_, signal) => {
        signal.addEventListener('abort', () => (withdrawn = true))
        return never()
      },
    })
    const id = await editor.open()
    const prompt = editor.prompt(id, 'Write it.')
    await until(() => expect(editor.asked).toHaveLength(1))
    expect(await stage.apart('approve', id, '--yes')).toMatchObject({ code: 0 })
    expect(await prompt).toBe('end_turn')
    expect([withdrawn, existsSync(join(stage.folder, 'a.txt'))]).toEqual([true, true])
  })

  it('B-ACP-15: a question that expires is withdrawn, its call does not run, and the model is told', async () => {
    const rules = [{ effect: 'ask', tool: 'write', expiresMs: 1_500 }]
    const policy = stage.write('config/terret/policy.json', JSON.stringify({ rules }))
    await scriptedBy([{ calls: [write('a.txt', 'x')] }, 'Too late.'], { approvals: { policy } })
    const editor = await editorOf({ permit: never })
    const id = await editor.open()
    expect(await editor.prompt(id, 'Write it.')).toBe('end_turn')
    expect([said(editor.of(id)), existsSync(join(stage.folder, 'a.txt'))]).toEqual(['Too late.', false])
  })

  it('B-ACP-16: an editor that has forms is asked there: an answer, a refusal, and later', async () => {
    await scriptedBy([ask('Your name?'), ask('Your age?'), ask('Your town?'), 'Thanks.'])
    const replies = [
      { action: 'accept', content: { answer: 'Ana' } },
      { action: 'decline' },
      { action: 'cancel' },
    ] as const
    const shown: string[] = []
    const editor = await editorOf({
      capabilities: { elicitation: { form: {} } },
      fill: ({ message }) => {
        shown.push(message)
        return replies[shown.length - 1] ?? { action: 'cancel' }
      },
    })
    const id = await editor.open()
    expect(await editor.prompt(id, 'Ask me.')).toBe('end_turn')
    expect(shown).toEqual(['Your name?', 'Your age?', 'Your town?'])
    expect(said(editor.of(id))).toBe('Your town?')
    // Also in another process: what waits is in the log.
    await editor.kill()
    const again = await editorOf()
    expect(said(await again.load(id))).toBe('Your town?')
    expect(await again.prompt(id, 'Oslo')).toBe('end_turn')
    const { out } = await stage.apart('history', id, '--event', 'user.custom_tool_result', '--json')
    const answers = out
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { content: string }).content)
    expect(answers).toEqual(['Ana', 'The user declined to answer.', 'Oslo'])
  })

  it('B-ACP-17: an MCP server that the editor names is started only after a person allowed it, and its values are not shown', async () => {
    await scriptedBy(['Without it.', { calls: [{ tool: 'odd__echo', args: { message: 'hi' } }] }, 'With it.'])
    const folder = join(stage.folder, '..', 'odd')
    mkdirSync(folder)
    const tools = [{ name: 'echo', inputSchema: { type: 'object', properties: { message: { type: 'string' } } } }]
    writeFileSync(join(folder, 'tools.json'), JSON.stringify({ tools }))
    const env = [{ name: 'ODD_KEY', value: 'sk-very-secret-value-1234' }]
    const server = { name: 'odd', command: process.execPath, args: [ODD, folder], env }
    const place: NewSessionRequest = { cwd: stage.folder, mcpServers: [server] }
    const editor = await editorOf({ permit: picks('reject_once') })
    const open = async () => (await editor.agent.request(methods.agent.session.new, place)).sessionId
    const first = await open()
    expect(existsSync(join(folder, 'log'))).toBe(false)
    expect(await editor.prompt(first, 'Hello.')).toBe('end_turn')
    expect(existsSync(join(folder, 'log'))).toBe(false)
    expect(JSON.stringify(editor.asked)).toContain('odd.mjs')
    expect(JSON.stringify(editor.asked)).toContain('ODD_KEY')
    expect(JSON.stringify(editor.asked)).not.toContain('sk-very-secret')

    editor.permit = picks('allow_once')
    const second = await open()
    expect(await editor.prompt(second, 'Use it.')).toBe('end_turn')
    expect(said(editor.of(second))).toBe('With it.')
    expect(callsIn(editor.of(second)).at(-1)).toMatchObject({ status: 'completed' })
    expect(JSON.stringify(editor.of(second))).toContain('you said hi')
  })

  it('B-ACP-21: a call of a subagent is shown and decided in the editor, and the prompt lasts until the subagent has reported', async () => {
    const has = (body: unknown, text: string): boolean => JSON.stringify(body).includes(text)
    await scriptedBy(({ body }) => {
      if (has(body, '<subagent_report')) return 'It found gold.'
      if (has(body, 'spawned_new')) return 'I started it. '
      if (has(body, 'Lead it.')) return { calls: [{ tool: 'spawn_subagent', args: { prompt: 'Dig here.' } }] }
      return has(body, 'Created found.txt') ? 'Gold.' : { calls: [write('found.txt', 'Gold.')] }
    })
    const editor = await editorOf({ permit: picks('allow_once') })
    const id = await editor.open()
    expect(await editor.prompt(id, 'Lead it.')).toBe('end_turn')
    expect(editor.asked).toHaveLength(1)
    expect(editor.asked[0]?.toolCall).toMatchObject({
      title: 'write found.txt',
      toolCallId: expect.stringMatching(/^~.+\/.+/) as string,
    })
    expect(readFileSync(join(stage.folder, 'found.txt'), 'utf8')).toBe('Gold.')
    expect(said(editor.of(id))).toBe('I started it. It found gold.')
    expect(said(await editor.load(id), 'user_message_chunk')).toBe('Lead it.')
  })

  it('B-ACP-18: when the editor ends, the command ends with 0, and a run that was open goes on later', async () => {
    await scriptedBy([{ calls: [write('a.txt', 'x')] }, 'Done.'])
    const editor = await editorOf({ permit: never })
    const id = await editor.open()
    void editor.prompt(id, 'Write it.').catch(() => {})
    await until(() => expect(editor.asked).toHaveLength(1))
    expect(await editor.close()).toBe(0)
    expect(await stage.apart('approve', id, '--yes', '--resume')).toMatchObject({ code: 0 })
    expect(existsSync(join(stage.folder, 'a.txt'))).toBe(true)
  })

  it('B-ACP-19: without a model a new session is refused with what to do, and nothing but the protocol is on standard output', async () => {
    const editor = await editorOf()
    const refused = await editor.open().catch((error: unknown) => (error as Error).message)
    expect(refused).toContain('terret init')
    expect(await editor.close()).toBe(0)
  })
})
