//! `TwitterAPI`: tweets, comments and whom one follows.

use std::sync::Arc;

use spar_python::signature::Default;
use spar_python::text::lower;
use spar_python::{
    BinaryOperator, Dict, Outcome, Value, contains, equal, iterate, length, subscript, to_int,
    to_str,
};

use super::file_system::text_of;
use super::message::as_dict;
use super::method::{Method, error, methods};
use super::mutation::{append, augmented, extend, insert, part, remove};
use crate::Process;
use crate::process::DEFAULT_MENTIONS;

/// The account.
#[derive(Debug, Clone)]
pub(crate) struct Twitter {
    pub(crate) username: Value,
    pub(crate) password: Value,
    pub(crate) authenticated: Value,
    /// Tweets by number. The mentions of one that was posted without any are those of the process.
    pub(crate) tweets: Value,
    pub(crate) comments: Value,
    pub(crate) retweets: Value,
    pub(crate) following_list: Value,
    pub(crate) tweet_counter: Value,
}

pub(crate) const METHODS: &[Method<Twitter>] = methods!(Twitter, "TwitterAPI", {
    authenticate_twitter(username, password) => |api, _, given| {
        let is_right = equal(&given[0], &api.username) && equal(&given[1], &api.password);
        if is_right {
            api.authenticated = Value::Bool(true);
        }
        Ok(Value::record([("authentication_status", Value::Bool(is_right))]))
    };
    posting_get_login_status() => |api, _, _| {
        Ok(Value::record([("login_status", Value::Bool(api.authenticated.is_true()))]))
    };
    post_tweet(content, tags = Default::EmptyList, mentions = Default::SharedList(DEFAULT_MENTIONS)) => |api, process, given| {
        api.post(process, &given[0], &given[1], &given[2])
    };
    retweet(tweet_id) => |api, _, given| api.retweet(&given[0]);
    comment(tweet_id, comment_content) => |api, _, given| api.comment(&given[0], &given[1]);
    mention(tweet_id, mentioned_usernames) => |api, process, given| {
        api.mention(process, &given[0], &given[1])
    };
    follow_user(username_to_follow) => |api, _, given| api.follow(&given[0]);
    list_all_following() => |api, _, _| {
        if !api.authenticated.is_true() {
            return Ok(not_authenticated("listing following"));
        }
        Ok(Value::record([("following_list", api.following_list.clone())]))
    };
    unfollow_user(username_to_unfollow) => |api, _, given| api.unfollow(&given[0]);
    get_tweet(tweet_id) => |api, process, given| {
        if !contains(&api.tweets, &given[0])? {
            return no_tweet(&given[0]);
        }
        shown(&subscript(&api.tweets, &given[0])?, process)
    };
    get_user_tweets(username) => |api, process, given| api.of_user(process, &given[0]);
    search_tweets(keyword) => |api, process, given| api.search(process, &given[0]);
    get_tweet_comments(tweet_id) => |api, _, given| {
        if !contains(&api.tweets, &given[0])? {
            return no_tweet(&given[0]);
        }
        let comments = as_dict(&api.comments, "get")?.get(&given[0])?.cloned();
        Ok(comments.unwrap_or_else(|| Value::list([])))
    };
    get_user_stats(username) => |api, _, given| api.stats(&given[0]);
});

impl Twitter {
    pub(crate) fn load(scenario: &Dict) -> Outcome<Self> {
        let given = |name: &str, default: Value| scenario.get_str(name).cloned().unwrap_or(default);
        let empty = || Value::record([]);
        let mut tweets = Dict::default();
        for (key, tweet) in as_dict(&given("tweets", empty()), "items")?.iter() {
            tweets.insert(Value::from(to_int(key)?), tweet.clone())?;
        }
        Ok(Self {
            username: given("username", Value::from("john")),
            password: given("password", Value::from("john123")),
            authenticated: given("authenticated", Value::Bool(false)),
            tweets: Value::Dict(Arc::new(tweets)),
            comments: given("comments", empty()),
            retweets: given("retweets", empty()),
            following_list: given("following_list", Value::list(["alice", "bob"].map(Value::from))),
            tweet_counter: given("tweet_counter", Value::from(0_i64)),
        })
    }

    /// The tweets with the mentions that they have in a process.
    pub(crate) fn tweets_in(&self, process: &Process) -> Outcome<Value> {
        let mut tweets = Dict::default();
        for (key, tweet) in as_dict(&self.tweets, "items")?.iter() {
            tweets.insert(key.clone(), shown(tweet, process)?)?;
        }
        Ok(Value::Dict(Arc::new(tweets)))
    }

    fn post(
        &mut self,
        process: &Process,
        content: &Value,
        tags: &Value,
        mentions: &Value,
    ) -> Outcome<Value> {
        if !self.authenticated.is_true() {
            return Ok(not_authenticated("posting"));
        }
        let tweet = Value::record([
            ("id", self.tweet_counter.clone()),
            ("username", self.username.clone()),
            ("content", content.clone()),
            ("tags", tags.clone()),
            ("mentions", mentions.clone()),
        ]);
        insert(&mut self.tweets, self.tweet_counter.clone(), tweet.clone())?;
        self.tweet_counter =
            augmented(BinaryOperator::Add, &self.tweet_counter, &Value::from(1_i64))?;
        shown(&tweet, process)
    }

    fn retweet(&mut self, tweet_id: &Value) -> Outcome<Value> {
        if !self.authenticated.is_true() {
            return Ok(not_authenticated("retweeting"));
        }
        if !contains(&self.tweets, tweet_id)? {
            return no_tweet(tweet_id);
        }
        if !contains(&self.retweets, &self.username)? {
            insert(&mut self.retweets, self.username.clone(), Value::list([]))?;
        }
        let own = part(&mut self.retweets, &self.username)?;
        let told = if contains(own, tweet_id)? {
            "Already retweeted"
        } else {
            append(own, tweet_id.clone())?;
            "Successfully retweeted"
        };
        Ok(Value::record([("retweet_status", Value::from(told))]))
    }

    fn comment(&mut self, tweet_id: &Value, content: &Value) -> Outcome<Value> {
        if !self.authenticated.is_true() {
            return Ok(not_authenticated("commenting"));
        }
        if !contains(&self.tweets, tweet_id)? {
            return no_tweet(tweet_id);
        }
        if !contains(&self.comments, tweet_id)? {
            insert(&mut self.comments, tweet_id.clone(), Value::list([]))?;
        }
        let comment =
            Value::record([("username", self.username.clone()), ("content", content.clone())]);
        append(part(&mut self.comments, tweet_id)?, comment)?;
        Ok(Value::record([("comment_status", Value::from("Comment added successfully"))]))
    }

    fn mention(
        &mut self,
        process: &mut Process,
        tweet_id: &Value,
        names: &Value,
    ) -> Outcome<Value> {
        if !contains(&self.tweets, tweet_id)? {
            return no_tweet(tweet_id);
        }
        let tweet = part(&mut self.tweets, tweet_id)?;
        let mentions = part(tweet, &Value::from("mentions"))?;
        if Process::is_default_mentions(mentions) {
            extend(process.default_mentions_mut(), names)?;
        } else {
            extend(mentions, names)?;
        }
        Ok(Value::record([("mention_status", Value::from("Users mentioned successfully"))]))
    }

    fn follow(&mut self, name: &Value) -> Outcome<Value> {
        if !self.authenticated.is_true() {
            return Ok(not_authenticated("following"));
        }
        let is_new = !contains(&self.following_list, name)?;
        if is_new {
            append(&mut self.following_list, name.clone())?;
        }
        Ok(Value::record([("follow_status", Value::Bool(is_new))]))
    }

    fn unfollow(&mut self, name: &Value) -> Outcome<Value> {
        if !self.authenticated.is_true() {
            return Ok(not_authenticated("unfollowing"));
        }
        let is_followed = contains(&self.following_list, name)?;
        if is_followed {
            remove(&mut self.following_list, name)?;
        }
        Ok(Value::record([("unfollow_status", Value::Bool(is_followed))]))
    }

    fn of_user(&self, process: &Process, username: &Value) -> Outcome<Value> {
        let mut tweets = Vec::new();
        for tweet in as_dict(&self.tweets, "values")?.values() {
            if equal(&subscript(tweet, &Value::from("username"))?, username) {
                tweets.push(shown(tweet, process)?);
            }
        }
        Ok(Value::list(tweets))
    }

    fn search(&self, process: &Process, keyword: &Value) -> Outcome<Value> {
        let mut found = Vec::new();
        for tweet in as_dict(&self.tweets, "values")?.values() {
            let keyword = lower(text_of(keyword, "lower")?);
            let content = subscript(tweet, &Value::from("content"))?;
            let mut is_match = lower(text_of(&content, "lower")?).contains(&keyword);
            if !is_match {
                for tag in iterate(&subscript(tweet, &Value::from("tags"))?)? {
                    is_match |= lower(text_of(&tag, "lower")?) == keyword;
                }
            }
            if is_match {
                found.push(shown(tweet, process)?);
            }
        }
        Ok(Value::list(found))
    }

    fn stats(&self, username: &Value) -> Outcome<Value> {
        let mut tweets = 0_usize;
        for tweet in as_dict(&self.tweets, "values")?.values() {
            tweets += usize::from(equal(&subscript(tweet, &Value::from("username"))?, username));
        }
        let following = match equal(username, &self.username) {
            true => length(&self.following_list)?,
            false => 0,
        };
        let retweets = match as_dict(&self.retweets, "get")?.get(username)? {
            Some(retweets) => length(retweets)?,
            None => 0,
        };
        Ok(Value::record([
            ("tweet_count", Value::from(tweets)),
            ("following_count", Value::from(following)),
            ("retweet_count", Value::from(retweets)),
        ]))
    }
}

fn not_authenticated(before: &str) -> Value {
    error(format!("User not authenticated. Please authenticate before {before}."))
}

fn no_tweet(tweet_id: &Value) -> Outcome<Value> {
    Ok(error(format!("Tweet with ID {} not found.", to_str(tweet_id)?)))
}

/// A tweet with the mentions that it has in a process.
fn shown(tweet: &Value, process: &Process) -> Outcome<Value> {
    let mut tweet = tweet.clone();
    let is_default = tweet
        .as_dict()
        .and_then(|tweet| tweet.get_str("mentions"))
        .is_some_and(Process::is_default_mentions);
    if is_default {
        insert(&mut tweet, Value::from("mentions"), process.default_mentions().clone())?;
    }
    Ok(tweet)
}
