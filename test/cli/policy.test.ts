// Rules and people at the command line: the place that rules name, votes of several people, and rules that are kept for a folder.
import { existsSync, symlinkSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'
import { lastLine } from './stage.ts'

const { scriptedBy, stage } = stageOfEach()

const policyFile = (policy: object): string => stage.write('policy.json', JSON.stringify(policy))
const write = (path: string) => ({ calls: [{ tool: 'write', args: { path, content: 'x' } }] })
const fetching = (url: string) => ({ calls: [{ tool: 'web_fetch', args: { url } }] })
/** The key of the one call that waits after this run. */
async function callOf(...run: readonly string[]): Promise<string> {
  const { pending } = (await stage.json('run', ...run)) as { readonly pending: readonly { readonly callId: string }[] }
  return pending[0]?.callId ?? ''
}
const TOOLS = { tools: ['read', 'write', 'web_fetch'] }
const URL_ = 'http://127.0.0.1:9/'

describe('the place that rules name', () => {
  it('B-POLICY-23: a rule for an environment holds where the user or the command line says so, and a workspace may not', async () => {
    const policy = policyFile({ rules: [{ effect: 'deny', tool: 'write', environment: 'production' }] })
    stage.configure({ approvals: { policy, environment: 'production' }, model: 'offline:any' })
    const test = ['policy', 'test', 'write', '{"path":"a","content":"x"}', '--mode', 'auto']
    expect((await stage.terret(...test)).out).toMatch(/^deny: /)
    expect((await stage.terret(...test, '--environment', 'staging')).out).toBe('allow\n')
    expect((await stage.terret('policy')).out).toMatch(/^Place {5}production$/m)
    expect((await stage.terret('policy', '--environment', ' ')).code).toBe(2)
    stage.write('work/.terret/config.json', JSON.stringify({ approvals: { environment: 'staging' } }))
    const { code, err } = await stage.terret('run', '--trust', 'Write.')
    expect([code, lastLine(err)]).toEqual([
      7,
      expect.stringContaining('"approvals.environment" is not for a workspace'),
    ])
  })

  it('B-POLICY-23: it holds in runs, and in those that go on', async () => {
    const policy = policyFile({ rules: [{ effect: 'deny', tool: 'write', environment: 'production' }] })
    await scriptedBy([write('a'), 'Then not.', write('b'), 'Done.'], { approvals: { policy } })
    const run = ['run', '--mode', 'auto'] as const
    expect((await stage.terret(...run, '--environment', 'production', 'Write.')).out).toBe('Then not.\n')
    expect((await stage.terret(...run, '--continue', 'Write.')).out).toBe('Done.\n')
    expect([existsSync(join(stage.folder, 'a')), existsSync(join(stage.folder, 'b'))]).toEqual([false, true])
  })
})

describe('links and obeyed files', () => {
  it('B-LINK-6: `policy test` follows links, from the folder that the tools work in', async () => {
    const policy = policyFile({ rules: [{ effect: 'deny', path: 'secrets/**' }] })
    stage.configure({ approvals: { policy }, model: 'offline:any' })
    stage.write('work/secrets/key', 'x')
    symlinkSync('secrets', join(stage.folder, 'plain'))
    const test = (path: string) => stage.terret('policy', 'test', 'read', JSON.stringify({ path }))
    expect((await test('plain/key')).out).toMatch(/^deny: /)
    expect((await test('other/key')).out).toBe('allow\n')
  })

  it('B-OBEY-1: mode auto asks before AGENTS.md, a policy file or a skill in the folder is changed', async () => {
    const policy = join(stage.folder, 'rules.json')
    stage.write('work/rules.json', JSON.stringify({ rules: [{ effect: 'allow' }] }))
    stage.write('work/skills/greet/SKILL.md', '---\nname: greet\ndescription: Greets.\n---\nSay hello.\n')
    stage.configure({ approvals: { policy }, skills: [join(stage.folder, 'skills')], model: 'offline:any' })
    const test = (path: string) =>
      stage.terret('policy', 'test', 'write', JSON.stringify({ path, content: 'x' }), '--mode', 'auto')
    for (const path of ['AGENTS.md', 'rules.json', 'skills/greet/SKILL.md', '.env'])
      expect((await test(path)).out).toBe('ask\n')
    expect((await test('src/a.ts')).out).toBe('allow\n')
  })
})

describe('a question for several people', () => {
  it('B-APPROVE-12, B-APPROVE-10: approve says what is still needed, and a second vote of the same person is refused', async () => {
    const rule = { effect: 'ask', tool: 'write', class: 'release', n: 2, roles: ['lead'] }
    await scriptedBy([write('a'), 'Done.'], { approvals: { policy: policyFile({ rules: [rule] }) } })
    expect((await stage.terret('policy')).out).toContain('ask tool write, class release, 2 approvals, by lead')
    const call = await callOf('Write.')
    expect((await stage.terret('pending')).out).toMatch(/class release, by lead, 0 of 2 approvals\):[\s\S]*--role lead/)
    const by = (name: string, ...more: readonly string[]) =>
      stage.terret('approve', 'latest', '--by', name, '--role', 'lead', ...more)
    const first = await by('ana', '--resume')
    expect([first.code, first.out]).toEqual([3, `Approved write (call ${call}) as ana.\n`])
    expect(lastLine(first.err)).toMatch(
      /^1 of 2 approvals \(ana\)\. 1 more person must approve it: terret approve \S+ \S+ --by NAME --role lead$/,
    )
    expect((await stage.terret('pending')).out).toContain('1 of 2 approvals (ana)')
    const again = await by('ana')
    expect([again.code, again.out]).toEqual([9, ''])
    expect(lastLine(again.err)).toContain(`ana approved call ${call} already`)
    expect(existsSync(join(stage.folder, 'a'))).toBe(false)
    expect((await by('bob', '--resume')).code).toBe(0)
    expect(readFileSync(join(stage.folder, 'a'), 'utf8')).toBe('x')
    // B-DECIDE-3: the voters are also named afterwards.
    expect((await stage.terret('inspect', 'latest')).out).toContain(`Decided   call ${call}, write: yes (ana, bob)\n`)
    const { decisions } = (await stage.json('inspect', 'latest')) as { readonly decisions: unknown }
    expect(decisions).toEqual([{ call, tool: 'write', allow: true, by: ['ana', 'bob'] }])
  })

  it('B-DECIDE-1: what was interrupted is not pending any more, and approving it is refused with a sentence', async () => {
    await scriptedBy([write('a'), 'Done.'], {
      approvals: { policy: policyFile({ rules: [{ effect: 'ask', tool: 'write' }] }) },
    })
    const call = await callOf('Write.')
    expect((await stage.terret('interrupt', 'latest', '--by', 'ana')).code).toBe(0)
    // B-SERVE-89: who it was is in the log.
    expect((await stage.terret('history', 'latest')).out).toContain('stop by ana\n')
    expect((await stage.terret('pending')).err).toBe('Nothing waits for you here.\n')
    for (const named of [[], [call]]) {
      const late = await stage.terret('approve', 'latest', ...named)
      expect([late.code, late.out]).toEqual([9, ''])
      expect(late.err).toMatch(
        /^terret: (Nothing of session \S+ waits|Call \S+ does not wait).*its run was interrupted/,
      )
    }
    expect((await stage.terret('resume', 'latest')).code).not.toBe(3)
    expect(existsSync(join(stage.folder, 'a'))).toBe(false)
  })

  it('B-POLICY-20: an approved call runs, also when the session is resumed where no person can be asked', async () => {
    await scriptedBy([write('a'), 'Done.'], {
      approvals: { policy: policyFile({ rules: [{ effect: 'ask', tool: 'write' }] }) },
    })
    await stage.terret('run', 'Write.')
    await stage.terret('approve', 'latest')
    expect((await stage.terret('resume', 'latest', '--on-ask', 'deny')).code).toBe(0)
    expect(existsSync(join(stage.folder, 'a'))).toBe(true)
  })
})

describe('mode ask', () => {
  it('B-POLICY-22: prompts whose answers go to a file are asked about, others are not', async () => {
    stage.configure({ model: 'offline:any', tools: ['parallel_llm'] })
    const source = { type: 'inline', prompts: ['Hello.'] }
    const test = (args: object) => stage.terret('policy', 'test', 'parallel_llm', JSON.stringify(args))
    expect((await test({ source, output_file: 'a.json' })).out).toBe('ask\n')
    expect((await test({ source })).out).toBe('allow\n')
    const policy = policyFile({ rules: [{ effect: 'deny', path: 'important.txt' }] })
    stage.configure({ model: 'offline:any', tools: ['parallel_llm'], approvals: { policy } })
    expect((await test({ source, output_file: 'important.txt' })).out).toMatch(/^deny: /)
  })
})

describe('always', () => {
  it('B-POLICY-25, B-POLICY-26: approve --always says what the rule matches, keeps it for the folder and records it; it can be forgotten', async () => {
    await scriptedBy([fetching(URL_), 'Done.', fetching(URL_), 'Done.', fetching(`${URL_}b`), fetching(URL_)], TOOLS)
    await stage.terret('run', 'Fetch.')
    const kept = await stage.terret('approve', 'latest', '--always', '--by', 'ana')
    expect(kept.code).toBe(0)
    const words = `allow tool web_fetch, url is "${URL_}", and nothing else`
    expect(kept.err).toContain(`From now on, in ${stage.folder}, without asking: ${words}`)
    expect((await stage.terret('policy')).out).toContain(`Kept 1    ${words} (ana)`)
    const { out } = await stage.terret('history', 'latest', '--event', 'user.tool_confirmation', '--json')
    expect(JSON.parse(out)).toMatchObject({ remember: { effect: 'allow', exact: { url: URL_ } } })
    // Without an approver, the same call runs; in another folder it does not, and neither does a similar call.
    expect((await stage.terret('resume', 'latest')).code).toBe(0)
    expect((await stage.terret('run', 'Again.')).code).toBe(0)
    expect((await stage.terret('run', 'Another.')).code).toBe(3)
    expect(existsSync(join(stage.folder, '.terret'))).toBe(false)
    stage.write('other/a.txt', '')
    const elsewhere = ['policy', 'test', 'web_fetch', JSON.stringify({ url: URL_ })]
    expect((await stage.terretIn({ cwd: join(stage.folder, '..', 'other') }, ...elsewhere)).out).toBe('ask\n')
    expect((await stage.terret('policy', 'forget', '2')).code).toBe(6)
    expect(await stage.terret('policy', 'forget', '1')).toMatchObject({ code: 0, out: `Forgotten: ${words}\n` })
    expect((await stage.terret('policy')).out).not.toContain('Kept')
    expect((await stage.terret('run', 'Once more.')).code).toBe(3)
  })

  it('B-POLICY-25: it is refused where it would be asked all the same, and a workspace still narrows what was kept', async () => {
    const policy = policyFile({ rules: [{ effect: 'ask', tool: 'web_fetch', args: { url: '*asked*' } }] })
    await scriptedBy([fetching(`${URL_}asked`), 'Done.', fetching(URL_), 'Done.'], { ...TOOLS, approvals: { policy } })
    await stage.terret('run', 'Fetch.')
    const refused = await stage.terret('approve', 'latest', '--always')
    expect([refused.code, lastLine(refused.err)]).toEqual([2, expect.stringContaining('asked about each time')])
    expect((await stage.terret('approve', 'latest', '--resume')).code).toBe(0)
    await stage.terret('run', 'Fetch.')
    expect((await stage.terret('approve', 'latest', '--always', '--resume')).code).toBe(0)
    const test = ['policy', 'test', 'web_fetch', JSON.stringify({ url: URL_ })]
    expect((await stage.terret(...test)).out).toBe('allow\n')
    stage.write('work/.terret/policy.json', JSON.stringify({ rules: [{ effect: 'deny', tool: 'web_fetch' }] }))
    stage.write('work/.terret/config.json', JSON.stringify({ approvals: { policy: 'policy.json' } }))
    await stage.terret('trust')
    expect((await stage.terret(...test)).out).toMatch(/^deny: /)
  })

  it('B-POLICY-26: a file of kept rules that is not understood is refused', async () => {
    stage.configure({ model: 'offline:any' })
    stage.write('data/rules.json', '{')
    expect((await stage.terret('policy')).code).toBe(7)
    const rules = { version: 1, folders: { [stage.folder]: [{ rule: { effect: 'perhaps' }, by: 'ana', at: '' }] } }
    stage.write('data/rules.json', JSON.stringify(rules))
    expect((await stage.terret('policy')).code).toBe(7)
  })
})
