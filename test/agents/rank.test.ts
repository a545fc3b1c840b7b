// Toolkit ranking: which of many tools fit a prompt.
import { expect, it } from 'vitest'
import { rankTools } from '../../src/agents/index.ts'

const VERBS = ['create', 'get', 'list', 'update', 'delete', 'merge', 'send', 'search', 'add', 'remove']
const THINGS =
  'pull_request pull_request_review issue branch commit release tag label milestone comment review gist webhook deployment environment secret variable runner workflow_run workflow_job check_run check_suite repository repository_topic team member organization project project_card project_column reaction star fork collaborator invitation key deploy_key page discussion notification thread package code_scanning_alert dependabot_alert ruleset branch_protection autolink migration codespace assignee'.split(
    ' ',
  )
const github = VERBS.flatMap((verb) =>
  THINGS.map((thing) => ({
    name: `github__${verb}_${thing}`,
    description: `${verb[0]?.toUpperCase()}${verb.slice(1)} a ${thing.replaceAll('_', ' ')} of a repository.`,
  })),
)

it('B-DEFINE-35: of 500 tools of a code host, “open a PR for the fix” leaves at most 20, “create pull request” among the first 3, each time the same', () => {
  expect(github).toHaveLength(500)
  const ranked = rankTools(github, 'open a PR for the fix')
  expect(ranked.length).toBeLessThanOrEqual(20)
  expect(ranked.slice(0, 3).map(({ name }) => name)).toContain('github__create_pull_request')
  expect(rankTools(github.toReversed(), 'open a PR for the fix')).toEqual(ranked)
})

it('B-DEFINE-36: tools with another verb are dropped, those without one stay, and abbreviations are written out', () => {
  const tools = [
    'delete_repository',
    'create_repository',
    'repository_settings',
    'add_repository_topic',
    'list_repository',
  ].map((name) => ({ name, description: name }))
  expect(rankTools(tools, 'make a new repo').map(({ name }) => name)).toEqual([
    'create_repository',
    'add_repository_topic',
    'repository_settings',
  ])
  const slack = [
    'SLACK_SEND_DIRECT_MESSAGE',
    'slackSendChannelMessage',
    'slack_list_direct_messages',
    'send_message_draft',
  ].map((name) => ({ name, description: '' }))
  expect(rankTools(slack, 'send Ana a dm about the channel draft')[0]?.name).toBe('SLACK_SEND_DIRECT_MESSAGE')
})

it('B-DEFINE-37: fewer than three hits leave all tools as they are; long and strange input is bounded', () => {
  expect(rankTools(github, 'good morning')).toBe(github)
  expect(rankTools(github, '')).toBe(github)
  expect(rankTools([], 'open a PR')).toEqual([])
  const from = process.cpuUsage()
  rankTools(github, 'open a PR '.repeat(1_000_000))
  rankTools(github, '🦜 __proto__ constructor toString')
  expect(process.cpuUsage(from).user / 1_000).toBeLessThan(1_000)
})
