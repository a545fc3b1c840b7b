// Toolkit ranking: which of many tools fit a prompt.
import { expect, it } from 'vitest'
import { rankTools } from '../../src/agents/index.ts'
import { toolkit } from './toolkit.ts'

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

it('B-DEFINE-36: the verb of the prompt is a weight: tools with another one come last, and abbreviations are written out', () => {
  const tools = [
    'delete_repository',
    'create_repository',
    'repository_settings',
    'add_repository_topic',
    'list_repository',
  ].map((name) => ({ name, description: name }))
  const names = rankTools(tools, 'make a new repo').map(({ name }) => name)
  expect(names[0]).toBe('create_repository')
  expect(names).toHaveLength(5)
  expect(names.indexOf('add_repository_topic')).toBeLessThan(names.indexOf('delete_repository'))
  const slack = [
    'SLACK_SEND_DIRECT_MESSAGE',
    'slackSendChannelMessage',
    'slack_list_direct_messages',
    'send_message_draft',
  ].map((name) => ({ name, description: '' }))
  expect(rankTools(slack, 'send Ana a dm about the channel draft')[0]?.name).toBe('SLACK_SEND_DIRECT_MESSAGE')
})

it('B-DEFINE-37: without a hit all tools stay as they are; long and strange input is bounded', () => {
  expect(rankTools(github, 'good morning')).toBe(github)
  expect(rankTools(github, '')).toBe(github)
  expect(rankTools([], 'open a PR')).toEqual([])
  const from = process.cpuUsage()
  rankTools(github, 'open a PR '.repeat(1_000_000))
  rankTools(github, '🦜 __proto__ constructor toString')
  expect(process.cpuUsage(from).user / 1_000).toBeLessThan(1_000)
})

/** What people write, and the tools of which one must be among the first five. */
const SENTENCES: readonly (readonly [prompt: string, ...tools: string[]])[] = [
  ['Show me the open pull requests', 'github_list_pull_requests'],
  ['open a PR', 'github_create_pull_request'],
  ['Could you open a PR for the fix I just pushed?', 'github_create_pull_request'],
  ['merge the PR once it is green', 'github_merge_pull_request'],
  ['Which issues are assigned to me?', 'github_list_issues', 'jira_search_issues', 'linear_list_issues'],
  ['close issue 42', 'github_close_issue'],
  ['Why did CI fail last night?', 'github_list_workflow_runs', 'github_get_workflow_run'],
  ['Rerun the failed workflow', 'github_rerun_workflow_run'],
  ['Delete the old branches', 'github_delete_branch'],
  ['where in the code do we call the parser', 'github_search_code'],
  ['send Ana a dm that I am late', 'slack_send_direct_message'],
  ['Post a message in the general channel', 'slack_send_message'],
  ['What did people say in the design channel yesterday?', 'slack_get_channel_history'],
  ['Invite Carla to the design channel', 'slack_invite_channel_member'],
  ['Email the contract to Bob', 'gmail_send_email'],
  ['Reply to the last email thread from my landlord', 'gmail_reply_email_thread'],
  ['Find the email about the lease', 'gmail_search_emails'],
  ["What's on my calendar today?", 'calendar_list_events', 'calendar_get_event', 'calendar_get_calendar'],
  ['Put lunch with Bob on my calendar tomorrow at noon', 'calendar_create_event'],
  ['Move the meeting to Friday', 'calendar_move_event', 'zoom_update_meeting'],
  ['I need a free slot for four people next week', 'calendar_find_free_slot'],
  ['Upload this file to Drive', 'drive_upload_file'],
  ['Add a row to the budget spreadsheet', 'drive_append_spreadsheet_row'],
  ['Create a Jira ticket for the login bug', 'jira_create_issue'],
  ['Who is on call this weekend?', 'pagerduty_list_on_calls'],
  ['Acknowledge the incident', 'pagerduty_acknowledge_incident'],
  ['Give Jane a refund for the last payment', 'stripe_create_refund'],
  ['cancel my subscription', 'stripe_cancel_subscription'],
  ['Look up the customer jane@example.com', 'stripe_search_customers', 'stripe_get_customer', 'shopify_get_customer'],
  ['Any errors in the logs since the deploy?', 'datadog_search_logs'],
]

it('B-RANK-1: of a toolkit of 500 tools, 30 everyday sentences leave at most 20, with one that does it among the first five', () => {
  expect(toolkit).toHaveLength(500)
  expect(SENTENCES).toHaveLength(30)
  const missed = SENTENCES.flatMap(([prompt, ...wanted]) => {
    const ranked = rankTools(toolkit, prompt).map(({ name }) => name)
    const found = wanted.some((name) => ranked.slice(0, 5).includes(name))
    return found && ranked.length <= 20 ? [] : [`${prompt}: ${ranked.length}, ${ranked.slice(0, 6).join(' ')}`]
  })
  expect(missed).toEqual([])
})

it('B-RANK-2: with one or two hits the list is filled up to its length, and without one all tools stay', () => {
  const ranked = rankTools(toolkit, 'detect the language')
  expect(ranked[0]?.name).toBe('translate_detect_language')
  expect(ranked).toHaveLength(20)
  expect(rankTools(toolkit, 'detect the language', 5)).toEqual(ranked.slice(0, 5))
  expect(rankTools(toolkit, 'hello')).toBe(toolkit)
})
