// `terret acp` in an editor that offers its files and terminals: what is not saved counts, changes go through the editor, and commands run in
// its terminals, inside the same walls and after the same approvals.
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Chaos, startChaos } from '../../src/testing/index.ts'
import type { Json } from '../../src/kernel/index.ts'
import { endpoint, openStage, type Stage } from '../cli/stage.ts'
import { noBubblewrap } from '../tools/box.ts'
import { until } from '../until.ts'
import { Desktop } from './desktop.ts'
import { callsIn, type Editor, openEditor, picks, Script } from './editor.ts'

const script = new Script()
let stage: Stage
let chaos: Chaos
let desktop: Desktop
let editor: Editor

beforeAll(async () => {
  stage = openStage()
  chaos = await startChaos({ script: script.reply })
  stage.configure({ ...endpoint(chaos.url), bash: { risk: 'relaxed' } })
  desktop = new Desktop()
  editor = await openEditor(stage, { capabilities: desktop.capabilities, offer: desktop.offer })
})
afterAll(async () => {
  await editor.kill()
  await chaos.close()
  stage.close()
})
beforeEach(() => {
  editor.permit = picks('allow_once')
  editor.forget()
  desktop.unsaved.clear()
  desktop.asked.length = 0
  desktop.format = (text) => text
})

const at = (path: string): string => join(stage.folder, path)
const onDisk = (path: string): string => readFileSync(at(path), 'utf8')
const call = (tool: string, args: Json) => ({ calls: [{ tool, args }] })

async function prompt(text: string, ...calls: Parameters<Script['on']>[1][]): Promise<string> {
  const id = await editor.open()
  expect(await editor.prompt(id, script.on(text, ...calls, 'Done.'))).toBe('end_turn')
  return id
}

/** What the calls gave the model, in order. */
function results(id: string): readonly string[] {
  return callsIn(editor.of(id)).flatMap(({ status, rawOutput }) =>
    status === 'completed' || status === 'failed' ? [(rawOutput as { readonly text: string }).text] : [],
  )
}

describe('files of an editor', () => {
  it('B-EDITOR-1: a file is read as the editor has it, with what is not saved', async () => {
    stage.write('work/open.txt', 'saved\n')
    desktop.unsaved.set(at('open.txt'), 'typed just now\n')
    const id = await prompt('Read the open file.', call('read', { path: 'open.txt' }))
    expect(results(id)[0]).toContain('typed just now')
    expect(desktop.asked).toContain(`read ${at('open.txt')}`)
  })

  it('B-EDITOR-2: an edit is asked about and made on the text that the editor has, and written through it', async () => {
    stage.write('work/edit.txt', 'one\n')
    desktop.unsaved.set(at('edit.txt'), 'one\ntwo\n')
    const edits = [{ path: 'edit.txt', old_string: 'two', new_string: 'three' }]
    const id = await prompt('Edit the open file.', call('edit', { edits }))
    expect(onDisk('edit.txt')).toBe('one\nthree\n')
    expect(desktop.asked).toContain(`write ${at('edit.txt')}`)
    expect(JSON.stringify(editor.asked)).not.toContain('changed since this was asked')
    expect(results(id)[0]).toContain('Edited edit.txt')
  })

  it('B-EDITOR-3: a yes is for the text that was shown: if the person types meanwhile, nothing is written and the question comes again', async () => {
    stage.write('work/shown.txt', 'old\n')
    desktop.unsaved.set(at('shown.txt'), 'older\n')
    const shown: unknown[] = []
    editor.permit = (asked, signal) => {
      shown.push(asked.toolCall.content)
      if (shown.length === 1) desktop.unsaved.set(at('shown.txt'), 'typed while it was asked\n')
      return picks('allow_once')(asked, signal)
    }
    await prompt('Write over it.', call('write', { path: 'shown.txt', content: 'new\n' }))
    expect(shown).toMatchObject([
      [{ type: 'diff', oldText: 'older\n', newText: 'new\n' }],
      [{ type: 'diff', oldText: 'typed while it was asked\n', newText: 'new\n' }],
    ])
    expect(onDisk('shown.txt')).toBe('new\n')
    expect(desktop.asked.filter((one) => one.startsWith('write'))).toHaveLength(1)
  })

  it('B-EDITOR-4: the rules for paths hold: a link that leads out and a protected place are not asked of the editor', async () => {
    stage.write('secret.txt', 'secret\n')
    symlinkSync(join(stage.folder, '..', 'secret.txt'), at('link.txt'))
    mkdirSync(at('.git/hooks'), { recursive: true })
    desktop.unsaved.set(at('link.txt'), 'from the editor\n')
    const id = await prompt(
      'Try to get out.',
      call('read', { path: 'link.txt' }),
      call('write', { path: 'link.txt', content: 'x' }),
      call('write', { path: '.git/hooks/pre-commit', content: 'x' }),
    )
    for (const text of results(id)) expect(text).toMatch(/out of bounds|protected/)
    expect(results(id)).toHaveLength(3)
    expect(desktop.asked).toEqual([])
    expect(existsSync(at('.git/hooks/pre-commit'))).toBe(false)
  })

  it('B-EDITOR-5: what the editor changes as it saves is told, and a new file is made through it, with its folders', async () => {
    desktop.format = (text) => text.trim().concat('\n')
    const id = await prompt('Make a file.', call('write', { path: 'deep/new.txt', content: '  hello  ' }))
    expect(onDisk('deep/new.txt')).toBe('hello\n')
    expect(results(id)[0]).toMatch(/Created deep\/new\.txt.*The editor changed the text as it saved it\./s)
  })
})

describe('terminals of an editor', () => {
  it('B-EDITOR-6: a command runs in a terminal of the editor, which its call shows, and its result is as ever', async () => {
    const before = desktop.commands.length
    const id = await prompt('Run it.', call('bash', { command: 'echo to-out; echo to-err >&2; exit 3' }))
    expect(desktop.commands.length).toBe(before + 1)
    const shown = callsIn(editor.of(id)).flatMap(({ content }) => content ?? [])
    const terminal = shown.find(({ type }) => type === 'terminal') as { readonly terminalId: string } | undefined
    expect(desktop.released).toContain(terminal?.terminalId)
    expect(desktop.terminal(terminal?.terminalId ?? '').output).toMatch(/to-out[^]*to-err|to-err[^]*to-out/)
    expect(JSON.parse(results(id)[0] ?? '{}')).toMatchObject({ stdout: 'to-out\n', stderr: 'to-err\n', exit_code: 3 })
  })

  it('B-EDITOR-7: a denied command starts no terminal, and a cancelled prompt stops what runs in one', async () => {
    editor.permit = picks('reject_once')
    const before = desktop.commands.length
    const denied = await editor.open()
    await editor.prompt(denied, script.on('Fetch it.', call('bash', { command: 'true', network: true }), 'No.'))
    expect(desktop.commands.length).toBe(before)
    editor.permit = picks('allow_once')
    const id = await editor.open()
    const running = editor.prompt(
      id,
      script.on('Wait long.', call('bash', { command: 'touch begun; sleep 100; touch late' })),
    )
    await editor.sees(
      id,
      (update) =>
        update.sessionUpdate === 'tool_call_update' &&
        Array.isArray(update.content) &&
        update.content.some(({ type }) => type === 'terminal'),
    )
    await until(() => expect(existsSync(at('begun'))).toBe(true))
    await editor.cancel(id)
    expect(await running).toBe('cancelled')
    expect(existsSync(at('late'))).toBe(false)
  })

  it.skipIf(noBubblewrap)('B-EDITOR-8: the walls of the sandbox stand in a terminal of the editor too', async () => {
    const outside = join(stage.folder, '..', 'outside.txt')
    const id = await prompt(
      'Break out.',
      call('bash', { command: `echo x > ${JSON.stringify(outside)}; echo x > inside.txt` }),
    )
    expect(results(id)).toHaveLength(1)
    expect([existsSync(outside), existsSync(at('inside.txt'))]).toEqual([false, true])
  })

  it('B-EDITOR-9: no command in a terminal outlives the process that asked for it', async () => {
    const { capabilities, offer } = desktop
    const other = await openEditor(stage, { capabilities, offer, permit: picks('allow_once') })
    const id = await other.open()
    const command = 'touch started; sleep 100; touch never'
    const running = other.prompt(id, script.on('Run on.', call('bash', { command }))).catch(() => {})
    await until(() => expect(existsSync(at('started'))).toBe(true))
    await other.kill()
    await running
    await desktop.terminals.at(-1)?.ended
    expect(existsSync(at('never'))).toBe(false)
  })

  it('B-EDITOR-16: a cancelled prompt ends also where the editor does not say that the terminal ended, and a terminal that it refuses is told', async () => {
    desktop.isDeaf = true
    const id = await editor.open()
    const command = 'touch deaf; sleep 100'
    const running = editor.prompt(id, script.on('Run where nobody listens.', call('bash', { command })))
    await until(() => expect(existsSync(at('deaf'))).toBe(true))
    await editor.cancel(id)
    expect(await running).toBe('cancelled')
    desktop.isDeaf = false
    desktop.refuses = true
    const refused = await prompt('Run nowhere.', call('bash', { command: 'touch nowhere' }))
    desktop.refuses = false
    expect(results(refused)[0]).toMatch(/The command was not run: The editor started no terminal: .*no terminals today/)
    expect(existsSync(at('nowhere'))).toBe(false)
  })
})
