// The hostile model suite, one case of each row of the threat table: with its defence it holds, and without it it is broken.
// `npm run attacks` plays all cases of all rows, and .ci/run runs that. What needs bubblewrap or root and has none is a named skip.
import { afterAll, describe, expect, it } from 'vitest'
import { missing, playAll } from './attacks/case.ts'
import { ROWS, SURFACES } from './attacks/rows.ts'
import { removeWalls } from './attacks/walls.ts'

const SENTENCES = [
  'B-ATTACK-13: no path leads a file tool out of the workspace',
  'B-ATTACK-14: no link leads a file tool out of the workspace',
  'B-ATTACK-15: no file is made under a link that leads out of the workspace',
  'B-ATTACK-16: a folder that is swapped for a link while a tool works in it leads nowhere',
  'B-ATTACK-17: a hard link, a pipe or an endless file harms nothing and blocks no other call',
  'B-ATTACK-18: an archive unpacks into the workspace only',
  'B-ATTACK-19: files that are obeyed unasked are never written, and do not stay when a command makes them',
  "B-ATTACK-20: a repository that makes git run programs harms nothing outside of it, and no command makes one that the user's next git obeys",
  'B-ATTACK-21: names and patterns are never read as options or commands',
  'B-ATTACK-22: a command slips past no rule by what a shell makes of it, and a path by none through the field it stands in',
  'B-ATTACK-23: in a sandbox that is missing or broken nothing is run',
  'B-ATTACK-24: a command reaches no socket of the host, and no network unless a person let it',
  'B-ATTACK-25: web_fetch reaches only the public web, and only hosts that were allowed',
  'B-ATTACK-26: no secret leaves in a name that is looked up',
  'B-ATTACK-27: a command finds no secret in an environment, a process or at home',
  'B-ATTACK-28: no process outlives its command or its harness',
  'B-ATTACK-29: floods and bombs end, and what is kept of them is bounded',
  'B-ATTACK-30: a command does not get out of the sandbox by what the kernel offers',
  'B-ATTACK-32: what runs is what was approved, whatever the model said about it',
  'B-ATTACK-33: a decision that is forged, replayed, late or made without the right to decides nothing',
  'B-ATTACK-34: an approver can see all of an action',
  'B-ATTACK-35: a remembered rule lets nothing through but what was remembered',
  'B-ATTACK-39: an MCP tool that is not what was approved is neither shown nor called',
  'B-ATTACK-40: an MCP server is started only as approved, with none of our secrets, and leaves nothing behind',
  'B-ATTACK-42: an MCP server sends its client nowhere else',
  'B-ATTACK-44: an MCP server without measure costs neither the run nor the memory',
  'B-ATTACK-45: names are never SQL, and a changed record is never acted on',
  'B-ATTACK-46: a known secret is in nothing that is written, shown or sent',
  'B-ATTACK-47: no pattern takes for ever',
  'B-ATTACK-48: no name in arguments, rows or rules changes every object',
  'B-ATTACK-50: no session from a file, whatever it says, runs a call that was not approved here',
  'B-ATTACK-51: no approval counts in another place than the one it was given for',
  'B-ATTACK-55: a call that a person denied does not run because the model repeats it, however it is spelled and whatever was allowed',
  'B-ATTACK-56: no text of a call hides what it does from the person who decides, and none speaks for the program',
  'B-ATTACK-60: an MCP server that lists colliding names stops no run, and takes no other tool’s place',
  'B-ATTACK-61: an MCP tool that changes within a run is not called any more, whether the server says so or not',
  'B-ATTACK-70: a socket of the host is not reached under any name, wherever and however it was bound',
  'B-ATTACK-71: what is obeyed unasked is planted nowhere, however deep, hidden or far from where it is looked for',
  'B-ATTACK-72: what the profile of the user exports reaches no command',
  'B-ATTACK-90: a tool that a run left out runs in no child, however it is started, how deep it is and who goes on with it',
  'B-ATTACK-91: a model sends no conversation to a provider that the configuration does not name',
  'B-ATTACK-92: no member takes the place of another, no tree or chain of wakes grows without end, and no child writes rules or plans of the user',
  'B-ATTACK-125: what the sessions of one owner taught is told to no other owner, whatever that one is called',
  'B-ATTACK-105: no id makes a session that a shell, a terminal or a path would obey, and none that is there does so where it is shown',
  'B-ATTACK-106: no option of a run counts that stands in a file, however the session goes on',
  'B-ATTACK-80: no setting of a repository runs a program when the harness uses git for worktrees',
  'B-ATTACK-81: the harness starts no git that the repository brings along',
  'B-ATTACK-82: a command finds nothing at home but the programs that tools need',
  "B-ATTACK-83: a command plants nothing where the settings of git lead, so that the user's next git obeys it",
  'B-ATTACK-85: a yes to a change of one file writes no other file, and no bytes that were not shown',
  'B-ATTACK-86: no link leads a call around a rule on paths, whenever the link is made',
  'B-ATTACK-87: no list and no search shows what rules deny or ask about',
  'B-ATTACK-88: no agent rewrites unasked what Terret obeys',
  'B-ATTACK-115: a rule that allows a command allows no other that the same text runs',
  'B-ATTACK-116: a command that is denied, asked about or a disaster does not run unasked, however bash lets it be written',
  'B-ATTACK-117: a known secret is in nothing that is shown while a call runs, in whatever spelling and pieces it comes',
  'B-ATTACK-100: no program drives a session of another one, shows it to its model or ends it, by whatever verb',
  'B-ATTACK-101: no caller learns of a session that is not theirs, and no token is good after it was dropped or its time is over',
  'B-ATTACK-95: no edit of a call runs that the schema, the policy or the roles would not let through, by whatever door it comes',
  'B-ATTACK-96: nobody counts as two people by a name that can be taken for their own',
  'B-ATTACK-126: no event from outside steers an agent with tools, and no answer of the triage starts one that is not on its list',
  'B-ATTACK-127: no delivery is taken that its sender did not sign, with these bytes, lately',
  'B-ATTACK-130: a whole repository of a stranger, cloned or unpacked, harms nothing: not when it is looked at, worked in or trusted',
  'B-ATTACK-131: an MCP server that is hostile from its start to its end learns nothing, is called only as allowed, and leaves nothing behind',
  'B-ATTACK-132: no page leads an agent inside, and no page of another origin or name speaks with a server',
  'B-ATTACK-133: what a file of a session sets off when it arrives is nothing: no call, no job, and no decision',
  'B-ATTACK-134: a provider that answers otherwise than it should has nothing run, and is told no key and no secret',
  'B-ATTACK-135: nobody with another token or another account of the machine reads, changes or learns of what is not theirs',
  'B-ATTACK-136: no program of a model reaches what is outside of its thread, or what a rule, a run or a person holds back',
]

const byNumber = (a: number, b: number): number => a - b
const rowOf = (sentence: string): number => Number(/\d+/.exec(sentence)?.[0])

describe('the attacks', () => {
  afterAll(removeWalls)

  it('B-ATTACK-1: are at least 2,000, each of another name within its row, and no row is left out here', () => {
    expect(ROWS.map(({ row }) => row).toSorted(byNumber)).toEqual(SENTENCES.map(rowOf).toSorted(byNumber))
    expect(ROWS.reduce((sum, { cases }) => sum + cases.length, 0)).toBeGreaterThanOrEqual(2_000)
    expect(new Set(SURFACES.map(({ name }) => name)).size).toBe(SURFACES.length)
    for (const { cases } of ROWS) expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
  })

  for (const row of ROWS) {
    const { cases } = row
    const sentence = SENTENCES.find((one) => rowOf(one) === row.row) ?? ''
    const playable = cases.filter((one) => missing(one) === null).slice(0, 1)
    it.skipIf(playable.length === 0)(`${sentence}`, async () => {
      expect(await playAll(row, playable)).toMatchObject([{ held: true, broken: true }])
    })
  }
})
