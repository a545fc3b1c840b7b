// What no tool and no command may change: files that somebody's shell, editor, git or harness runs or obeys unasked.
// Only the list. The file tools enforce it by name (paths.ts), the sandbox by mounts (sandbox.ts).

// biome-ignore format: names of a kind share a line
const NAMES = [
  '.gitconfig', '.gitmodules', '.husky', '.vscode', '.idea', '.mcp.json', '.terret', 'terret.json', '.npmrc', '.envrc',
  '.bashrc', '.bash_profile', '.bash_login', '.bash_logout', '.profile', '.zshrc', '.zshenv', '.zprofile', '.zlogin',
]

/** For the file tools, at any depth. They have no business in `.git` at all. */
export const PROTECTED_NAMES: readonly string[] = ['.git', ...NAMES]

/**
 * For commands, relative to the workspace. `git add` and `git commit` must write `.git/index` and the like, so of `.git` only what
 * names programs to run, or another place to read such names from, is closed.
 */
export const PROTECTED_PATHS: readonly string[] = [
  ...['hooks', 'config', 'config.worktree', 'commondir', 'info/attributes'].map((name) => `.git/${name}`),
  ...NAMES,
]
