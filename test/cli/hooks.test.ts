// Hooks of the configuration file: what they are told, what their answer does, and that they are shown before the first use.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { provider, scriptedBy, stage } = stageOfEach()

const write = { calls: [{ tool: 'write', args: { path: 'a.txt', content: 'a\n' } }] }
const sent = (at: number): string => JSON.stringify(provider.chaos?.requests[at]?.body)
const written = (): boolean => existsSync(join(stage.folder, 'a.txt'))
const run = (...more: readonly string[]) => stage.terret('run', '--mode', 'auto', 'Write.', ...more)

describe('hooks of the configuration', () => {
  it('B-CLI-383: a call is refused with what the hook said, and it is told what is called', async () => {
    const hook = {
      on: 'before_tool_call',
      tools: ['write'],
      command: 'cat > "$HOME/told"; echo "Not here." >&2; exit 2',
    }
    await scriptedBy([write, 'So be it.'], { hooks: [hook] })
    await stage.terret('trust')
    expect((await run()).code).toBe(0)
    expect(written()).toBe(false)
    expect(sent(1)).toContain('Not here.')
    const told: unknown = JSON.parse(readFileSync(join(stage.folder, '..', 'told'), 'utf8'))
    expect(told).toMatchObject({ on: 'before_tool_call', tool: 'write', args: { path: 'a.txt' }, folder: stage.folder })
  })

  it('B-CLI-383: one that agrees changes nothing; one that takes too long or is not there refuses', async () => {
    const agree = { on: 'before_tool_call', command: 'true' }
    await scriptedBy([write, 'Done.', write, 'Late.', write, 'Gone.'], { hooks: [agree] })
    await stage.terret('trust')
    await run()
    expect(written()).toBe(true)
    const settings = JSON.parse(readFileSync(join(stage.config, 'config.json'), 'utf8')) as object
    stage.configure({ ...settings, hooks: [{ ...agree, command: 'sleep 60', timeoutMs: 50 }] })
    await run('--trust')
    expect(sent(3)).toContain('It took longer than 50 ms.')
    stage.configure({ ...settings, hooks: [{ ...agree, command: 'no-such-program-here' }] })
    await run('--trust')
    expect(sent(5)).toContain('no-such-program-here')
  })

  it('B-CLI-383: a hook on a message tells the model or refuses, one on a result adds to it, and one on the end watches', async () => {
    const hooks = [
      {
        on: 'user_prompt_submit',
        command: 'grep -q secret && { echo "No secrets." >&2; exit 1; }; echo "It is Monday."',
      },
      { on: 'after_tool_call', tools: ['write'], command: 'echo "a.txt has tabs"; exit 1' },
      { on: 'run_end', command: 'cat > "$HOME/ended"; exit 3' },
    ]
    await scriptedBy([write, 'Done.'], { hooks })
    await stage.terret('trust')
    const { code, err } = await run()
    expect(code).toBe(0)
    expect(err).toContain('The hook "cat > "$HOME/ended"; exit 3" failed')
    expect(sent(0)).toContain('It is Monday.')
    expect(sent(1)).toContain('A hook of the user says: a.txt has tabs')
    const ended: unknown = JSON.parse(readFileSync(join(stage.folder, '..', 'ended'), 'utf8'))
    expect(ended).toMatchObject({ on: 'run_end', status: 'completed', text: 'Done.' })
    const refused = await stage.terret('run', 'My secret.')
    expect(refused.code).toBe(5)
    expect(refused.err).toContain('No secrets.')
    expect(provider.chaos?.requests).toHaveLength(2)
  })

  it('B-CLI-384: without being shown none runs; trust shows them once, and again when they change', async () => {
    await scriptedBy(['Hello.'], { hooks: [{ on: 'run_end', command: 'touch "$HOME/ran"' }] })
    const refused = await stage.terret('run', 'Say hello.')
    expect(refused.code).toBe(7)
    expect(refused.err).toContain('config.json are new. `terret trust` shows them, and lets them run.')
    const shown = await stage.terret('trust')
    expect(shown.err).toMatch(/Hooks in .*config\.json, which run with your rights[^]*run_end: touch "\$HOME\/ran"/)
    expect((await stage.terret('trust')).err).toBe('')
    expect((await stage.terret('run', 'Say hello.')).code).toBe(0)
    expect(existsSync(join(stage.folder, '..', 'ran'))).toBe(true)
    stage.write('work/.terret/config.json', JSON.stringify({ hooks: [{ on: 'run_end', command: 'touch theirs' }] }))
    const again = await stage.terret('run', 'Say hello.')
    expect(again.code).toBe(7)
    expect(again.err).toContain('.terret/config.json are new')
    expect(existsSync(join(stage.folder, 'theirs'))).toBe(false)
  })

  it('B-CLI-384: in a folder that is not trusted no hook is read, and a file that a hook names is asked about', async () => {
    stage.write('work/.terret/config.json', JSON.stringify({ hooks: [{ on: 'run_end', command: 'touch theirs' }] }))
    stage.write('work/check.sh', 'exit 0\n')
    const change = { calls: [{ tool: 'write', args: { path: 'check.sh', content: 'evil\n' } }] }
    await scriptedBy(['Hello.', change], { hooks: [{ on: 'before_tool_call', command: 'sh ./check.sh' }] })
    await stage.terret('trust')
    await stage.terret('trust', '--remove')
    stage.write('data/hooks.json', '{')
    expect((await stage.terret('run', 'Say hello.')).err).toContain('hooks.json cannot be read')
    stage.write('data/hooks.json', JSON.stringify({ version: 1, seen: [] }))
    await stage.terret('run', '--trust', '--model', 'offline:any', 'Say hello.')
    await stage.terret('trust', '--remove')
    expect((await stage.terret('run', 'Say hello.')).code).toBe(0)
    expect(existsSync(join(stage.folder, 'theirs'))).toBe(true)
    const asked = await stage.terret('run', '--mode', 'auto', 'Change the check.')
    expect(asked.code).toBe(3)
    expect(readFileSync(join(stage.folder, 'check.sh'), 'utf8')).toBe('exit 0\n')
  })

  it.each([
    [[{ on: 'before_lunch', command: 'true' }], '"hooks[0].on" must be before_tool_call, after_tool_call'],
    [[{ on: 'run_end' }], '"hooks[0]" needs "on" and "command"'],
    [[{ on: 'run_end', command: 'true', tools: ['bash'] }], '"hooks[0]" has "tools", but is not about calls'],
    [[{ on: 'run_end', command: 'true', tool: 'bash' }], '"hooks[0].tool" is not known. Did you mean "tools"?'],
    [{ run_end: 'true' }, '"hooks" must be a list'],
  ])('B-CLI-385: %j is refused', async (hooks, why) => {
    stage.configure({ model: 'offline:any', hooks })
    const refused = await stage.refused('run', 'Say hello.')
    expect(refused.code).toBe(7)
    expect(refused.err).toContain(why)
  })
})
