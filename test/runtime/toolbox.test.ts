// Where tools come from: given ones, sources, plan mode, reserved names. On a harness with a scripted model.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Fault, Harness, type Script, scripted, type Tool, type ToolSource } from '../../src/index.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

function make(script: Script, tools: readonly (Tool | ToolSource)[], plan = false): Harness {
  const harness = new Harness({ model: scripted(script), tools, plan })
  open.push(harness)
  return harness
}

function tool(name: string, extra: Partial<Parameters<typeof defineTool<unknown>>[0]> = {}): Tool {
  return defineTool<unknown>({ name, description: name, input: z.object({}), execute: () => `${name} ran`, ...extra })
}

class Source implements ToolSource {
  readonly type = 'source'
  readonly name = 'source'
  asked = 0
  closed = 0
  now: readonly Tool[]
  broken: Fault | null = null

  constructor(...tools: readonly Tool[]) {
    this.now = tools
  }

  async tools(): Promise<readonly Tool[]> {
    this.asked += 1
    if (this.broken) throw this.broken
    return this.now
  }

  async close(): Promise<void> {
    this.closed += 1
  }
}

const call = (name: string) => ({ calls: [{ tool: name }] })

describe('sources of tools', () => {
  it('B-TOOLBOX-1: a source is asked before each run, its tools run, and it is closed with the harness', async () => {
    const source = new Source(tool('far'))
    const harness = make([call('far'), 'one', call('far'), 'two'], [tool('near'), source])
    expect(source.asked).toBe(0)
    expect((await harness.run('a')).status).toBe('completed')
    expect((await harness.run('b')).status).toBe('completed')
    expect(source.asked).toBe(2)
    await harness.close()
    expect(source.closed).toBe(1)
  })

  it('B-TOOLBOX-2: a tool that comes while a run is open is unknown to that run, and known to the next', async () => {
    const source = new Source(tool('old'))
    const said: string[] = []
    const harness = make(
      [
        () => {
          source.now = [tool('old'), tool('new')]
          return call('new')
        },
        (request) => {
          said.push(JSON.stringify(request.messages.at(-1)))
          return 'done'
        },
        call('new'),
        (request) => {
          said.push(JSON.stringify(request.messages.at(-1)))
          return 'done'
        },
      ],
      [source],
    )
    await harness.run('a')
    await harness.run('b')
    expect(said[0]).toContain('unknown tool')
    expect(said[1]).toContain('new ran')
  })

  it('B-TOOLBOX-3: a source that cannot be done without ends the run with its sentence, and is asked again by the next', async () => {
    const source = new Source(tool('far'))
    source.broken = new Fault('invalid_config', 'The server "far" did not start: no such file.')
    const harness = make([call('far'), 'fine'], [source])
    const failed = await harness.run('a')
    expect(failed).toMatchObject({ status: 'failed' })
    expect(JSON.stringify(failed)).toContain('The server \\"far\\" did not start')
    source.broken = null
    expect((await harness.run('b')).status).toBe('completed')
  })

  it('B-TOOLBOX-4: two tools of one name and names of the harness itself are refused; of a source such tools are left out, and the run says so', async () => {
    const refused = (name: string) =>
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining(name) as string }) as Error
    expect(() => make([], [tool('a'), tool('a')])).toThrow(refused('"a"'))
    expect(() => make([], [tool('subagent')])).toThrow(refused('"subagent"'))
    const far = new Source(tool('a'), tool('b'), tool('subagent'), tool('c'))
    let seen: readonly string[] = []
    const script: Script = (request) => {
      seen = request.tools.map(({ name }) => name)
      return 'done'
    }
    const result = await make(script, [tool('a'), far, new Source(tool('b'))]).run('x')
    expect([result.status, seen]).toEqual(['completed', ['a', 'c']])
    expect(result.warnings.map((text) => /^Tool "(\w+)" of .* is left out/.exec(text)?.[1])).toEqual([
      'a',
      'b',
      'subagent',
      'b',
    ])
  })
})

describe('plan mode', () => {
  it('B-TOOLBOX-5: the model sees only tools that change nothing and those a person answers; others are unknown', async () => {
    let ran = 0
    const write = tool('write', { effect: 'idempotent', execute: () => (ran += 1) })
    const { execute: _, ...asking } = { name: 'ask', description: 'ask', input: z.object({}), execute: null }
    const shown: string[] = []
    const harness = make(
      [
        (request) => {
          shown.push(...request.tools.map(({ name }) => name))
          return call('write')
        },
        'planned',
      ],
      [tool('look', { effect: 'read' }), write, tool('pay'), defineTool(asking)],
      true,
    )
    expect((await harness.run('plan it')).status).toBe('completed')
    expect(shown).toEqual(['look', 'ask'])
    expect(ran).toBe(0)
  })
})
