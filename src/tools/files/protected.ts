// What no tool and no command may change: files that a shell, an editor, git or the harness runs or obeys unasked.
// Only the list. The file tools enforce it by name (paths.ts), the sandbox by mounts (sandbox.ts).

/** Names, and runs of names, at any depth. */
export const PROTECTED: readonly string[] = [
  // Terret, and other harnesses whose settings name programs.
  ...words('.mcp.json .terret terret.json .config/terret .local/share/terret .claude .codex .cursor .gemini'),
  'Library/Application Support/terret',
  // When a person commits, or a prompt asks for the state of a repository.
  ...words(`
    .gitconfig .gitmodules .config/git .githooks .husky .pre-commit-config.yaml .overcommit.yml lefthook.yml
    .lefthook.yml lefthook.yaml .lefthook.yaml lefthook.toml lefthook.json lefthook-local.yml .lefthook .hgrc
    .hg/hgrc .jjconfig.toml .config/jj
  `),
  // When a person opens a folder in an editor, or an editor.
  ...words(`
    .vscode .idea .zed .fleet .helix .config/helix .devcontainer .devcontainer.json .dir-locals.el
    .dir-locals-2.el .emacs .emacs.d .config/emacs .exrc .vim .vimrc .gvimrc .nvimrc .nvim.lua .config/nvim
    .kakrc .config/kak
  `),
  // When a person enters a folder, or uses a tool whose version or home is decided there.
  ...words(`
    .envrc .config/direnv .mise .mise.toml mise.toml .mise.local.toml mise.local.toml .config/mise .rtx.toml
    .tool-versions .asdfrc .rvmrc .autoenv .autoenv.zsh
  `),
  // When a person opens a shell or a terminal, or each time a prompt is shown.
  ...words(`
    .bashrc .bashrc.d .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .profile .zshrc
    .zshenv .zprofile .zlogin .zlogout .oh-my-zsh .p10k.zsh .config/zsh .config/fish .cshrc .tcshrc .login
    .logout .kshrc .mkshrc .shrc .shinit .yashrc .yash_profile .config/nushell .elvish .config/elvish .xonshrc
    .config/xonsh .config/powershell Documents/PowerShell Documents/WindowsPowerShell .inputrc
    .config/starship.toml .tmux.conf .config/tmux .screenrc .config/alacritty .config/kitty .wezterm.lua
    .config/wezterm
  `),
  // When a person logs in.
  ...words(`
    .xprofile .xsession .xsessionrc .xinitrc .xserverrc .xclients .pam_environment .config/environment.d
    .config/plasma-workspace .config/autostart .config/systemd .local/share/systemd .local/share/dbus-1
    .config/i3 .i3 .config/sway .config/hypr Library/LaunchAgents
  `),
  // When a person starts a program that reads it first.
  ...words(`
    .npmrc .yarnrc .yarnrc.yml .curlrc .wgetrc .ssh .gnupg .aws/config .aws/credentials .kube/config
    .docker/config.json .docker/cli-plugins .mailcap .lessfilter .psqlrc .sqliterc .gdbinit .lldbinit .pdbrc
    .irbrc .pryrc .Rprofile .Renviron .iex.exs .ghci .octaverc .julia/config
  `),
]

function words(list: string): readonly string[] {
  return list.trim().split(/\s+/)
}

/**
 * What Terret and agents like it obey: instructions and keys. Names, at any depth. A person is asked each time before a file tool
 * changes them; a command that nobody allowed is kept from them like from what is protected.
 */
export const OBEYED: readonly string[] = words('AGENTS.md AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md .env')

/**
 * In every folder that git takes for a repository. `git add` and `git commit` must write `index` and the like, so for commands only
 * what names programs to run, or another place to read such names from, is closed. The file tools have no business in `.git` at all.
 */
export const OBEYED_BY_GIT: readonly string[] = ['hooks', 'config', 'config.worktree', 'commondir', 'info/attributes']

/**
 * From the repository. `git rebase` must write it, so it is not closed: lines that run a program must not be new after a command.
 */
export const REBASE_ORDERS = 'rebase-merge/git-rebase-todo'

/** What git takes for a repository, by the names that are in the folder. A worktree's has no objects of its own. */
export function isGitFolder(has: (name: string) => boolean): boolean {
  return has('HEAD') && (has('objects') || has('commondir'))
}
