// The pages of the site, in the order of its parts, each with questions that it answers. A question is found by the search like a
// heading: write what somebody types who does not know our words yet. Pages of the API are added by the build.

export type Page = {
  /** From the root of the repository, without `.md`. */
  readonly path: string
  readonly questions?: readonly string[]
}
export type Part = { readonly title: string; readonly pages: readonly Page[] }

const guide = (name: string, ...questions: readonly string[]): Page => ({ path: `docs/guide/${name}`, questions })
const recipe = (name: string, ...questions: readonly string[]): Page => ({ path: `docs/recipes/${name}`, questions })
const reference = (name: string, ...questions: readonly string[]): Page => ({
  path: `docs/reference/${name}`,
  questions,
})
const page = (name: string, ...questions: readonly string[]): Page => ({ path: `docs/${name}`, questions })

/** A page that is not there is left out, and a guide that is not here fails a test. */
export const PARTS: readonly Part[] = [
  {
    title: 'Start',
    pages: [
      guide(
        'quickstart',
        'How do I install it?',
        'How do I begin? My first agent',
        'Hello world, getting started, a minimal example',
      ),
      guide(
        'concepts',
        'What is a session, a run, a turn, a call?',
        'What does durable mean?',
        'How does it work, in one picture?',
        'What is an effect class? What are read, idempotent and once?',
      ),
      page('recipes/README', 'Examples to copy', 'Complete programs for common things'),
      recipe(
        'chat',
        'A chat in Next.js with useChat and React',
        'How do I build a chatbot with history?',
        'Messages survive a reload of the page',
      ),
      recipe(
        'slack-approval',
        'How do I approve from Slack?',
        'A button in a Slack message allows or denies a call',
        'Somebody presses a button in a chat to confirm',
      ),
      recipe(
        'multi-tenant',
        'How does each customer have their own data?',
        'Keep tenants and organisations apart',
        'Many users in one server, isolated from each other',
      ),
      recipe(
        'nightly-job',
        'How do I run an agent every night?',
        'A scheduled job that runs once a day',
        'A batch at a fixed time of day',
      ),
      recipe('long-task', 'A task that takes hours or days', 'Work in the background that survives a restart'),
      recipe(
        'research',
        'An agent that searches the web and writes a report with sources',
        'Research with several agents',
      ),
      recipe('extraction', 'Get JSON out of documents, invoices or emails', 'Extract data from text and files'),
      recipe('code-review', 'An agent that reviews code', 'Review a diff or a pull request on my machine'),
      recipe('github-review', 'Review pull requests from a GitHub webhook', 'A bot that comments on GitHub'),
      recipe(
        'mcp-agent',
        'An agent that uses the tools of an MCP server',
        'Offer my agent to Claude or another client',
      ),
      recipe('server-in-node', 'Mount the server in node:http'),
      recipe('server-in-express', 'Mount the server and the inspector in Express'),
      recipe('server-in-hono', 'Mount the server and the inspector in Hono'),
      recipe('server-in-next', 'Mount the server and the inspector in a Next.js app'),
      recipe('from-the-ai-sdk', 'Move from the AI SDK of Vercel', 'I use generateText and streamText today'),
      page('from/README', 'Coming from another library or framework'),
      page('from/ai-sdk', 'Terret and the Vercel AI SDK, the same program before and after'),
      page('from/openai-agents', 'Terret and OpenAI Agents, the same program before and after'),
      page('from/langgraph', 'Terret and LangGraph, the same program before and after', 'I come from LangChain'),
      page('from/mastra', 'Terret and Mastra, the same program before and after'),
      page('from/claude-agent-sdk', 'Terret and the Claude Agent SDK, the same program before and after'),
      page(
        'compare',
        'What is the difference to LangGraph, Temporal, Mastra or the AI SDK?',
        'Which library should I choose? Alternatives',
      ),
      guide('when-not-to-use', 'When is it too much? Do I need this?', 'A simple script or a single request is enough'),
      guide(
        'troubleshooting',
        'It does not work: an error message and its cause',
        'Next.js finds no SQLite; serverExternalPackages; store_unsupported',
        'Docker, bubblewrap, pnpm, bundlers, webpack, native modules',
        'NFS and network drives; EBADENGINE; wrong clocks',
        'Frequently asked questions (FAQ)',
      ),
    ],
  },
  {
    title: 'Build',
    pages: [
      guide(
        'tools',
        'How do I define a tool? Let the model call my function',
        'Built-in tools: read, write, edit, search, web',
        'How do I keep a tool from running twice?',
        'Secrets and API keys in tools',
      ),
      guide(
        'approvals',
        'How do I ask a person before something happens?',
        'Human in the loop: confirm, allow, deny or reject a tool call',
        'Two people must agree; four eyes',
        'Rules and policy: which calls are allowed without asking',
        'Change the arguments before approving',
      ),
      guide(
        'budgets',
        'How do I stop an agent from spending more than a dollar?',
        'Limit the cost, price or money of a run, a session, a day or a customer',
        'How much did it cost? Prices of tokens',
        'An agent that runs up a bill',
      ),
      guide(
        'limits',
        'How do I stop an agent that loops for ever?',
        'It calls the same tool again and again; stuck in a loop',
        'At most so many requests, tokens, tool calls or minutes',
        'Timeouts',
      ),
      guide(
        'structured-output',
        'How do I get an answer as JSON or by a schema?',
        'Typed answers with Zod, Valibot or ArkType',
      ),
      guide(
        'models',
        'How do I use a local model? Ollama, llama.cpp, LM Studio, vLLM',
        'Run offline on my own laptop or hardware, without a cloud',
        'OpenAI, Anthropic Claude, Google Gemini, OpenRouter, Azure, Bedrock: providers and keys',
        'What happens when a provider is down? Outages, retries, rate limits, fallback to another model',
        'A proxy or gateway, my own endpoint',
        'Reasoning, thinking, temperature, prompt cache',
      ),
      guide(
        'sessions',
        'How do I continue a conversation? History, resume, fork, pause, delete',
        'Erase everything about a user (GDPR)',
        'How do I stop a running agent?',
        'Send a message while it works; interrupt or cancel it',
        'Who approved what? The log of everything, for an audit',
      ),
      guide(
        'run-context',
        'How do I pass my user, database or request to a tool?',
        'Dependencies and data of one customer in one run',
        'Whose run is it? Different tools and instructions for each user',
      ),
      guide('context', 'Tool results are too long', 'How large is the prompt? What fills the context window?'),
      guide(
        'compaction',
        'What happens when the context window is full?',
        'Summaries of a long conversation',
        'Context length exceeded, too many tokens',
      ),
      guide(
        'memory',
        'How does an agent remember things between conversations?',
        'Long-term memory; what it learned before',
        'Vector search, facts about a user',
      ),
      guide('skills', 'Folders of instructions: SKILL.md'),
      guide('mcp', 'How do I connect an MCP server?', 'Tools from Model Context Protocol servers'),
      guide('agents', 'Describe an agent in a file', 'Agents in Markdown or TOML, with a team'),
      guide('subagents', 'One agent starts another', 'Delegate work to several agents in parallel; multi-agent'),
      guide('worktrees', 'Several agents change the same repository', 'Git branches and worktrees of agents'),
      guide(
        'workflows',
        'Fixed steps in a graph, with branches and loops',
        'A pipeline, state machine or DAG',
        'Map and reduce, councils, phases, an evaluator loop',
      ),
      guide('scripts', 'A model writes a program that calls tools', 'Code mode; programmatic tool calling'),
      guide('boards', 'A list of tasks that agents share', 'To-do lists, plans, goals, teams'),
      guide('outcomes', 'Work until the result is good enough', 'A grader checks the work against a rubric'),
      guide(
        'triggers',
        'An event from outside starts an agent',
        'Webhooks of GitHub, Stripe or Slack; signatures',
        'React to emails and alerts',
      ),
      guide(
        'cron',
        'How do I run an agent every night?',
        'Recurring jobs on a schedule; every Monday at nine; nightly',
      ),
      guide(
        'wake',
        'Sleep for a week and go on then',
        'Look again in an hour or tomorrow; follow up later',
        'Timers, reminders, delayed messages',
      ),
      guide(
        'consumers',
        'Do something after each run, exactly once',
        'Send a notification or mail when a run ends; dead letters',
      ),
      guide(
        'hooks',
        'Run my code before or after a tool call or a request',
        'Middleware, callbacks, guardrails, moderation of answers',
      ),
      guide('plugins', 'Package hooks, tools and settings together'),
      guide('streaming', 'Show the text as it is written', 'Tokens as they come; server-sent events'),
      guide(
        'ui',
        'Connect a web page: useChat, AG-UI, React',
        'Stream tokens into a React component',
        'A browser that approves and answers',
        'Frontend in React, Vue or Svelte',
      ),
      guide('view', 'Draw a session in my own interface', 'Timelines, waterfalls and trees of a run'),
      guide('editors', 'Use it in Zed, VS Code or JetBrains', 'Agent Client Protocol (ACP)'),
      guide('chat', 'A chat with an agent at the terminal', 'Keys, commands and screens of the chat'),
      guide(
        'cli',
        'Use it at a terminal without writing code',
        'terret run, approve, inspect, tail; a coding agent in my folder',
        'The configuration file and where it is',
      ),
      guide('import', 'Bring conversations of Claude Code or Codex', 'Import messages of another library'),
    ],
  },
  {
    title: 'Run',
    pages: [
      guide(
        'stores',
        'Which store or database should I use?',
        'Where is the data kept? SQLite, Postgres, memory',
        'Write a store of my own: Redis, MySQL, DynamoDB',
      ),
      guide(
        'postgres',
        'Two servers work on the same sessions',
        'Postgres, connection pools, PgBouncer, Neon, Supabase, migrations',
      ),
      guide('restate', 'Use Restate to wake workers'),
      guide('moving', 'Move from SQLite to Postgres', 'Backups; copy sessions to another store or machine'),
      guide(
        'operations',
        'How do I deploy it? Several servers and workers',
        'Run it in production, Kubernetes, Docker, scale out',
        'Upgrade to a new version without losing runs',
      ),
      guide(
        'server',
        'An HTTP API for sessions',
        'REST API, tokens, roles and authentication',
        'Call it from Python, Go or curl',
      ),
      guide('inspector', 'See in a browser what agents do', 'A dashboard, an admin page, an inbox of approvals'),
      guide(
        'sandbox',
        'Run commands of a model safely',
        'Isolation of bash; no network; bubblewrap; macOS',
        'Can the agent delete my files or read my keys?',
      ),
      guide(
        'security',
        'Is it safe? What is a boundary and what is not?',
        'Prompt injection, secrets, redaction',
        'An attacker, a hostile web page, untrusted text',
      ),
      guide(
        'when-a-process-dies',
        'What happens to a payment when the process dies?',
        'Charged twice if my server crashes',
        'A crash, kill -9, power loss or deploy in the middle of a call',
        'Exactly once, at most once; a call is unknown',
        'Resume after a restart; nothing is lost',
      ),
      guide('metrics', 'Prometheus and Grafana: numbers to watch', 'Alerts, health checks, monitoring'),
    ],
  },
  {
    title: 'Prove',
    pages: [
      guide(
        'testing',
        'How do I test an agent without a model?',
        'Write tests that do not call OpenAI',
        'Unit tests with scripted answers, in CI, without a key',
        'Mock or fake the LLM; vitest; jest',
      ),
      guide(
        'crash-tests',
        'Prove that my tools survive a crash',
        'Kill the process at each point; chaos; fault injection',
      ),
      guide('evals', 'How good is my agent? Measure it', 'Compare two models or prompts; scores, judges, datasets'),
      guide(
        'what-if',
        'Replay an old run with another model or prompt',
        'Would my new code have done the same? Regression of old logs',
      ),
      guide(
        'tracing',
        'OpenTelemetry, Langfuse, Jaeger, Datadog, Honeycomb: traces',
        'Debug what an agent did; observability',
      ),
      page(
        'reliability',
        'How is it proven that nothing is lost or done twice?',
        'Crash runs, simulation, fuzzing: the numbers',
      ),
      page(
        'contract',
        'What may I rely on? Promises with their tests',
        'Guarantees, durability, exactly once, at most once',
      ),
      page('benchmarks', 'How fast is it? Latency and throughput'),
      page('scale', 'How many sessions can it hold? Load and capacity'),
      page('tour', 'How is it built inside? Source code and architecture'),
    ],
  },
  {
    title: 'Reference',
    pages: [
      reference('README', 'Every function, option, command, event, error and route'),
      reference('configuration', 'config.json: every setting'),
      reference('commands', 'Every command and flag of terret'),
      reference('events', 'Every event of a log, with its fields', 'The schema of the log'),
      reference(
        'errors',
        'What does this error code mean?',
        'Exit codes and HTTP statuses',
        'Every fault, failure and refusal',
      ),
      reference('routes', 'Every HTTP route; OpenAPI'),
      page('glossary', 'What does this word mean?'),
    ],
  },
]

/** On no part of the site: they are for those who work on the project. */
export const NOT_ON_SITE: readonly string[] = ['docs/behavior', 'docs/inventory', 'docs/scenarios']
