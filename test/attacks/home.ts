// Row 82: what people keep in their home folder, looked for by a command.
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { BashOptions } from '../../src/tools/shell/bash.ts'
import type { Case, Row } from './case.ts'
import type { World } from './world.ts'

/** Keys, tokens, histories and private files, by where programs keep them. */
const PLACES = `
  .claude/.credentials.json .claude.json .codex/auth.json .gemini/oauth_creds.json .cursor/mcp.json .aider.conf.yml
  .config/github-copilot/hosts.json .continue/config.json .ollama/id_ed25519 .cache/huggingface/token .huggingface/token
  .kaggle/kaggle.json .wandb/settings .netrc .config/openai/key .config/anthropic/key
  .ssh/id_rsa .gnupg/private-keys-v1.d/a.key .password-store/a.gpg .config/sops/age/keys.txt .age/key.txt .local/share/keyrings/login.keyring
  .config/keepassxc/keepassxc.ini .config/Bitwarden/data.json .config/1Password/settings.json passwords.kdbx
  .aws/credentials .aws/sso/cache/a.json .azure/accessTokens.json .config/gcloud/credentials.db .oci/oci_api_key.pem .aliyun/config.json
  .bluemix/config.json .config/doctl/config.yaml .config/rclone/rclone.conf .s3cfg .boto .kube/config .docker/config.json
  .config/containers/auth.json .config/helm/registry/config.json .terraform.d/credentials.tfrc.json .vault-token .config/heroku/a
  .fly/config.yml .railway/config.json .vercel/auth.json .config/netlify/config.json .databrickscfg .snowsql/config .dbt/profiles.yml
  .npmrc .yarnrc.yml .pypirc .config/pypoetry/auth.toml .gem/credentials .bundle/config .composer/auth.json .m2/settings.xml
  .gradle/gradle.properties .cargo/credentials.toml .nuget/NuGet/NuGet.Config .hex/hex.config .ivy2/.credentials .condarc
  .git-credentials .config/git/credentials .config/gh/hosts.yml .config/hub .config/glab-cli/config.yml
  .bash_history .zsh_history .local/share/fish/fish_history .python_history .psql_history .mysql_history .sqlite_history
  .rediscli_history .dbshell .pgpass .my.cnf .viminfo .lesshst
  .mozilla/firefox/a/logins.json .config/google-chrome/Default/Cookies .config/BraveSoftware/a .thunderbird/a/key4.db
  .electrum/wallets/default .bitcoin/wallet.dat .ethereum/keystore/a .config/solana/id.json .config/Signal/config.json
  .config/Slack/Cookies .config/discord/a .android/adbkey Documents/taxes.txt notes.txt other-project/.env .env
`
  .trim()
  .split(/\s+/)

function looksFor(
  name: string,
  prepare: (world: World) => string,
  options?: (world: World) => Partial<BashOptions>,
): Case {
  return {
    name,
    needs: ['bubblewrap'],
    attack: (world) => {
      const path = prepare(world)
      return world.run(world.bash('masks', options?.(world)), `cat ${path}; grep -rsa canary- "$(dirname ${path})"`)
    },
    harmed: (world) => world.leaked,
  }
}

const at =
  (file: string) =>
  (world: World): string =>
    world.put(`home/${file}`, world.secret)

export const homes: Row = {
  row: 82,
  title: 'what people keep at home',
  cases: [
    ...PLACES.map((file) => looksFor(`reads ~/${file}`, at(file))),
    looksFor('reads what another program keeps beside its tools', (world) => {
      world.put('home/.cargo/bin/cargo', '#!/bin/sh\n', 0o755)
      world.put('home/.cargo/registry/a', 'a')
      return world.put('home/.cargo/credentials.toml', world.secret)
    }),
    looksFor(
      'reads the home folder of a workspace that lies in it',
      (world) => world.put('ws/../home/.config/tool/token', world.secret),
      (world) => {
        mkdirSync(join(world.home, 'project'))
        return { workspace: join(world.home, 'project') }
      },
    ),
    looksFor(
      'reads a home folder that is known by a link',
      (world) => {
        symlinkSync(world.home, join(world.root, 'home-link'))
        return at('.config/tool/token')(world)
      },
      (world) => ({ env: { ...process.env, HOME: join(world.root, 'home-link') } }),
    ),
    looksFor(
      'reads settings that lie elsewhere',
      (world) => world.put('settings/tool/token', world.secret),
      (world) => ({ env: { ...process.env, HOME: world.home, XDG_CONFIG_HOME: join(world.root, 'settings') } }),
    ),
    looksFor(
      'reads a home folder that is on PATH',
      (world) => world.put('home/.token', world.secret),
      (world) => ({ env: { ...process.env, HOME: world.home, PATH: `${world.home}:${process.env['PATH']}` } }),
    ),
    looksFor(
      'reads a home folder whose programs are on PATH',
      (world) => {
        world.put('home/bin/a', '#!/bin/sh\n', 0o755)
        world.put('home/.local/bin/a', '#!/bin/sh\n', 0o755)
        world.put('home/.local/share/tool/token', world.secret)
        return world.put('home/.token', world.secret)
      },
      (world) => ({
        env: {
          ...process.env,
          HOME: world.home,
          PATH: `${world.home}/bin:${world.home}/.local/bin:${process.env['PATH']}`,
        },
      }),
    ),
    looksFor('reads another repository that a file of the workspace names', (world) => {
      world.put('home/other/.git/HEAD', 'ref: refs/heads/main\n')
      mkdirSync(join(world.home, 'other/.git/objects'))
      world.put('home/other/.git/worktrees/a/gitdir', '/somewhere/else/.git\n')
      world.put('ws/.git', `gitdir: ${world.home}/other/.git/worktrees/a\n`)
      return world.put('home/other/.git/config', world.secret)
    }),
  ],
}
