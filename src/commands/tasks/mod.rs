//! `spar tasks`.

mod build_image;
mod description;
mod grade;
mod impact;
mod import;
mod ls;
mod make_repair;
mod package_index;
mod show;
mod unsolved;

use std::process::ExitCode;

use crate::cli::{MakeCommand, TasksArguments, TasksCommand};

/// Carries out a command about tasks.
pub(super) async fn tasks(arguments: &TasksArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        TasksCommand::Ls(arguments) => ls::ls(arguments).await,
        TasksCommand::Show(arguments) => show::show(arguments).await,
        TasksCommand::Impact(arguments) => impact::impact(arguments),
        TasksCommand::Unsolved(arguments) => unsolved::unsolved(arguments),
        TasksCommand::Grade(arguments) => grade::grade(arguments).await,
        TasksCommand::Import(arguments) => import::import(arguments),
        TasksCommand::Make { command: MakeCommand::Repair(arguments) } => {
            make_repair::make_repair(arguments).await
        }
        TasksCommand::BuildImage(arguments) => build_image::build_image(arguments).await,
    }
}
