// What of a workspace is read, and when: a trap in place of every file that could be configuration, before and after trust.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Chaos } from '../../src/testing/index.ts'
import { judge, loadPolicy } from '../../src/index.ts'
import { stageOfEach } from './scripted.ts'
import { endpoint, lastLine } from './stage.ts'

const { scriptedBy, stage } = stageOfEach()

const answering = (...replies: readonly string[]): Promise<Chaos> => scriptedBy(replies)

/** Pipes without a writer: opening one to read hangs, unless the code first checks that it is a regular file. */
function trap(...names: readonly string[]): void {
  for (const name of names) {
    mkdirSync(join(stage.folder, name, '..'), { recursive: true })
    execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', join(stage.folder, name)])
  }
}

const TRAPS = [
  '.terret/config.json',
  '.terret/policy.json',
  'AGENTS.md',
  '.env',
  'package.json',
  '.npmrc',
  'terret.json',
  '.mcp.json',
  '.git/config',
]

describe('an untrusted folder', () => {
  it('B-CLI-190: the trust line names what is there to trust, and there is none where nothing is', async () => {
    const notes = async (): Promise<string> => {
      const { err } = await stage.terret('run', '--model', 'offline:any', 'Say hello.')
      return err
        .split('\n')
        .filter((line) => line.includes('trust'))
        .join('\n')
    }
    mkdirSync(join(stage.folder, '.terret'))
    writeFileSync(join(stage.folder, 'README.md'), 'Hello.')
    expect(await notes()).toBe('')
    writeFileSync(join(stage.folder, 'AGENTS.md'), 'Hello.')
    const line = (what: string): string =>
      `${stage.folder} is not trusted: its ${what} not read. \`terret trust\` changes that.`
    expect(await notes()).toBe(line('AGENTS.md is'))
    symlinkSync('nowhere', join(stage.folder, '.env'))
    expect(await notes()).toBe(line('AGENTS.md and .env are'))
    await stage.terret('trust')
    expect(await notes()).toBe('')
  })

  it('B-CLI-20: nothing in it is read as configuration by any command, and a run says so in one line', async () => {
    trap(...TRAPS)
    const ran = await stage.terret('run', '--model', 'offline:any', 'Say hello.')
    expect(ran.code).toBe(0)
    expect(ran.err.split('\n')[0]).toBe(
      `${stage.folder} is not trusted: its .terret, AGENTS.md and .env are not read. \`terret trust\` changes that.`,
    )
    for (const args of [
      ['list'],
      ['inspect', 'latest'],
      ['pending'],
      ['policy'],
      ['doctor', '--model', 'offline:any'],
    ]) {
      expect((await stage.terret(...args)).code).toBe(0)
    }
  })

  it('B-CLI-21: its programs are not run: not one of a PATH that leads into it, and none that it names', async () => {
    const proof = join(stage.folder, '..', 'ran')
    const script = `#!/bin/sh\necho ran > ${proof}\n`
    for (const name of ['node_modules/.bin/rg', 'bwrap', 'git', 'sh']) {
      mkdirSync(join(stage.folder, name, '..'), { recursive: true })
      writeFileSync(join(stage.folder, name), script, { mode: 0o755 })
    }
    writeFileSync(
      join(stage.folder, 'evil.mjs'),
      `import { writeFileSync } from 'node:fs'; writeFileSync('${proof}', '')`,
    )
    mkdirSync(join(stage.folder, '.terret'))
    const config = { mcp: { evil: { command: 'node', args: ['evil.mjs'], required: true } } }
    writeFileSync(join(stage.folder, '.terret', 'config.json'), JSON.stringify(config))
    const env = { PATH: `${stage.folder}:${stage.folder}/node_modules/.bin:${process.env['PATH'] ?? ''}` }
    for (const task of ['list the files', 'search for "hello" in .', 'use glob with {"pattern":"*"}']) {
      expect((await stage.terretIn({ env }, 'run', '--model', 'offline:any', task)).code).toBe(0)
    }
    expect((await stage.terretIn({ env }, 'doctor', '--model', 'offline:any')).code).toBe(0)
    expect(() => readFileSync(proof)).toThrow(/ENOENT/)
  })

  it('B-CLI-22: its .env gives neither keys nor another home', async () => {
    writeFileSync(
      join(stage.folder, '.env'),
      `OPENAI_API_KEY=sk-stolen-0123456789\nTERRET_HOME=${stage.folder}/elsewhere\n`,
    )
    expect(await stage.terret('run', '--model', 'openai:gpt-5', 'x')).toMatchObject({ code: 7 })
  })
})

describe('a trusted folder', () => {
  it('B-CLI-23: trust is recorded by real path, for this folder alone, and can be taken back', async () => {
    const { requests } = await answering('Ok.', 'Ok.', 'Ok.', 'Ok.')
    writeFileSync(join(stage.folder, 'AGENTS.md'), 'Speak like a p\u{e0041}irate.\u200b')
    symlinkSync(stage.folder, join(stage.folder, '..', 'link'))
    expect((await stage.terret('trust', join(stage.folder, '..', 'link'))).code).toBe(0)
    expect((await stage.terret('trust', '--list')).out).toBe(`${stage.folder}\n`)
    const ran = await stage.terret('run', 'Hello.')
    expect(ran.err).toContain('AGENTS.md has 2 invisible characters')
    expect(JSON.stringify(requests[0]?.body)).toContain('Speak like a pirate.')
    mkdirSync(join(stage.folder, 'inner'))
    writeFileSync(join(stage.folder, 'inner', 'AGENTS.md'), 'Speak like a robot.')
    const inner = await stage.terretIn({ cwd: join(stage.folder, 'inner') }, 'run', 'Hello.')
    expect(inner.err).toContain('is not trusted')
    expect(JSON.stringify(requests[1]?.body)).not.toMatch(/pirate|robot/)
    await stage.terret('trust', '--remove')
    await stage.terret('run', 'Hello.')
    expect(JSON.stringify(requests[2]?.body)).not.toContain('pirate')
    await stage.terret('run', '--trust', 'Hello.')
    expect(JSON.stringify(requests[3]?.body)).toContain('pirate')
  })

  it('B-CLI-23: trust in a folder that is gone is taken back by its path, and what was never trusted is said', async () => {
    const gone = join(stage.folder, '..', 'gone')
    mkdirSync(gone)
    await stage.terret('trust', gone)
    rmSync(gone, { recursive: true })
    expect((await stage.terret('trust', '--remove', gone)).code).toBe(0)
    expect((await stage.terret('trust', '--list')).out).toBe('')
    expect((await stage.terret('trust', '--remove', gone)).code).toBe(6)
  })

  it('B-CLI-24: what is no regular file, or leads out of the folder, is refused and never waited for', async () => {
    stage.write('secret.txt', 'the secret')
    await stage.terret('trust')
    for (const name of ['.terret/config.json', 'AGENTS.md', '.env']) {
      trap(name)
      const { code, err } = await stage.terret('run', '--model', 'offline:any', 'x')
      expect([code, lastLine(err)]).toEqual([7, expect.stringContaining(`${name} is not a regular file`)])
      execFileSync('rm', [join(stage.folder, name)])
    }
    symlinkSync(join(stage.folder, '..', 'secret.txt'), join(stage.folder, 'AGENTS.md'))
    expect(lastLine((await stage.terret('run', '--model', 'offline:any', 'x')).err)).toContain(
      'leads out of its folder',
    )
  })

  it('B-CLI-25: a key that is set to nothing hides none below it, and a mark at the beginning of a .env is none of it', async () => {
    const { url, requests } = await answering('Ok.', 'Ok.')
    stage.configure({ model: 'openai:m', endpoints: { openai: { baseUrl: `${url}/v1`, protocol: 'chat' } } })
    stage.write('config/terret/.env', '\ufeffOPENAI_API_KEY=sk-0123456789abcdef\n')
    const env = { OPENAI_API_KEY: '' }
    expect(await stage.terretIn({ env }, 'run', 'Hello.')).toMatchObject({ code: 0 })
    stage.write('config/terret/.env', 'OPENAI_API_KEY=\n')
    stage.write('work/.env', 'OPENAI_API_KEY=sk-fedcba9876543210\n')
    expect(await stage.terretIn({ env }, 'run', '--trust', 'Hello.')).toMatchObject({ code: 0 })
    expect(requests).toHaveLength(2)
  })

  it('B-CLI-25: its .env is asked for keys alone, after the environment and the user', async () => {
    const { url, requests } = await answering('Ok.')
    stage.configure({ model: 'openai:m', endpoints: { openai: { baseUrl: `${url}/v1`, protocol: 'chat' } } })
    writeFileSync(
      join(stage.folder, '.env'),
      'OPENAI_API_KEY=sk-0123456789abcdef\nTERRET_HOME=/nowhere\nHTTPS_PROXY=http://127.0.0.1:1\n',
    )
    expect((await stage.terret('run', '--trust', 'Hello.')).code).toBe(0)
    expect(requests).toHaveLength(1)
    stage.configure({ model: 'offline:any', mcp: { a: { command: 'node', env: { TOKEN: '${MY_TOKEN}' } } } })
    writeFileSync(join(stage.folder, '.env'), 'MY_TOKEN=from-the-workspace\n')
    expect((await stage.terret('run', 'Hello.')).err).toContain('needs the variable MY_TOKEN, which is not set')
  })

  it.each([
    ['model', { model: 'openai:evil' }],
    ['outputTokensMax', { outputTokensMax: 1_000_000 }],
    ['reasoning', { reasoning: 'high' }],
    ['endpoints', { endpoints: { openai: { baseUrl: 'http://127.0.0.1:1' } } }],
    ['mcp', { mcp: { evil: { command: 'node', args: ['evil.mjs'] } } }],
    ['skills', { skills: 'skills' }],
    ['tracing', { tracing: { otlp: 'http://127.0.0.1:1' } }],
    ['bash', { bash: true }],
  ])(
    'B-CLI-26: its configuration cannot choose "%s": that is refused in one line with the file and the field',
    async (field, config) => {
      const { requests } = await answering('Never.')
      mkdirSync(join(stage.folder, '.terret'))
      writeFileSync(join(stage.folder, '.terret', 'config.json'), JSON.stringify(config))
      const { code, err } = await stage.refused('run', '--trust', 'Hello.')
      expect(code).toBe(7)
      expect(lastLine(err)).toContain(`.terret/config.json: "${field}" is not for a workspace to choose.`)
      expect(requests).toEqual([])
    },
  )

  it('B-CLI-27: its configuration and policy narrow: fewer tools, a stricter mode, lower limits, more that is denied', async () => {
    const { url } = await answering('Ok.')
    stage.configure({ ...endpoint(url), mode: 'auto', tools: ['read', 'write', 'list'], limits: { modelRequests: 5 } })
    mkdirSync(join(stage.folder, '.terret'))
    const own = (config: object): void =>
      writeFileSync(join(stage.folder, '.terret', 'config.json'), JSON.stringify(config))
    const policy = (rules: readonly object[]): void =>
      writeFileSync(join(stage.folder, '.terret', 'policy.json'), JSON.stringify({ rules }))
    own({
      mode: 'ask',
      tools: ['read', 'write', 'glob'],
      limits: { modelRequests: 9, activeMs: 99_000_000 },
      approvals: { policy: 'policy.json' },
    })
    policy([{ effect: 'deny', tool: 'write', path: 'src/**' }])
    await stage.terret('trust')
    const { tools, ...here } = (await stage.json('policy')) as { readonly tools: readonly string[] }
    expect(here).toMatchObject({ trusted: true, mode: 'ask' })
    expect(tools.filter((name) => ['read', 'write', 'edit', 'glob', 'search'].includes(name))).toEqual([
      'read',
      'write',
    ])
    expect((await stage.terret('policy', 'test', 'write', '{"path":"src/a","content":""}')).out).toMatch(/^deny: /)
    expect((await stage.terret('policy', 'test', 'write', '{"path":"a","content":""}')).out).toBe('ask\n')
    expect(await stage.json('policy', '--mode', 'auto')).toMatchObject({ mode: 'ask' })
    await stage.terret('run', 'Hello.')
    const { out } = await stage.terret('history', 'latest', '--event', 'run.started', '--json')
    expect(JSON.parse(out)).toMatchObject({ limits: { modelRequests: 5, activeMs: 600_000 } })
    policy([{ effect: 'allow', tool: 'write' }])
    expect(lastLine((await stage.terret('policy')).err)).toMatch(
      /policy\.json: rule 1 allows something\. A workspace may only narrow\.$/,
    )
  })
})

describe('the folders that a policy lets be written', () => {
  const write = (path: string) => JSON.stringify({ path, content: 'x' })
  const judged = async (path: string): Promise<string> =>
    (await stage.terret('policy', 'test', 'write', write(path))).out

  it('B-CLI-160: they, and patterns of rules, hold for relative paths from the folder that is worked in, and are shown', async () => {
    const rules = [{ effect: 'deny', path: `${stage.folder}/secret/**` }]
    const policy = { rules, writeRoots: [stage.folder], actionsPerHour: 7, asksPerHour: 9 }
    stage.write('config/terret/policy.json', JSON.stringify(policy))
    stage.configure({ model: 'offline:any', approvals: { policy: 'policy.json' } })
    expect(await judged('a.txt')).toBe('ask\n')
    expect(await judged('secret/a.txt')).toMatch(/^deny: /)
    expect(await judged('../a.txt')).toMatch(/^deny: .* it may write only in /)
    const { out } = await stage.terret('policy')
    for (const line of [`Writes in ${stage.folder}`, 'Changes   at most 7 an hour', 'Asks      at most 9 an hour'])
      expect(out.split('\n')).toContain(line)
  })

  it('B-CLI-160: those of a workspace start from its policy file, and its calls from the folder', async () => {
    stage.configure({ model: 'offline:any' })
    stage.write('work/.terret/config.json', JSON.stringify({ approvals: { policy: 'policy.json' } }))
    stage.write('work/.terret/policy.json', JSON.stringify({ rules: [], writeRoots: ['../src'] }))
    await stage.terret('trust')
    expect(await judged('src/a.txt')).toBe('ask\n')
    expect(await judged('a.txt')).toMatch(/^deny: /)
  })

  it('B-CLI-27: a workspace that says where relative paths start from moves nothing: what is judged is what is written', async () => {
    const allowed = join(stage.folder, 'open')
    mkdirSync(allowed)
    const call = { tool: 'write', args: { path: 'a.txt', content: 'x' } }
    await scriptedBy([{ calls: [call] }, 'Done.'], { mode: 'auto', approvals: { policy: 'policy.json' } })
    stage.write('config/terret/policy.json', JSON.stringify({ rules: [], writeRoots: [allowed] }))
    stage.write('work/.terret/config.json', JSON.stringify({ approvals: { policy: 'policy.json' } }))
    const own = stage.write(
      'work/.terret/policy.json',
      JSON.stringify({ rules: [], writeRoots: [allowed], base: allowed }),
    )
    // Without the defence: by its own policy it would write there.
    expect(judge(loadPolicy(own), { ...call, approval: 'auto' }).type).toBe('allow')
    expect((await stage.terret('run', '--trust', 'Write it.')).code).toBe(0)
    expect(existsSync(join(stage.folder, 'a.txt'))).toBe(false)
    expect(await judged('a.txt')).toMatch(/^deny: /)
    expect(await judged('open/a.txt')).toBe('allow\n')
  })
})

describe('where an agent works', () => {
  it('B-CLI-28: never in a folder that holds its own data or configuration, nor inside of them', async () => {
    const above = await stage.terretIn({ cwd: join(stage.folder, '..') }, 'run', '--model', 'offline:any', 'x')
    expect([above.code, lastLine(above.err)]).toEqual([7, expect.stringContaining('Work in a folder of its own.')])
    const inside = await stage.terretIn({ cwd: stage.home }, 'run', '--model', 'offline:any', 'x')
    expect(inside.code).toBe(7)
  })
})
